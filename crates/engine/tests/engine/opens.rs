//! Who has a volume open, and what that refuses.

use std::sync::Arc;

use engine::{
    Client, Done, OpenInfo, OpenVolume, Opener, Reply, RequestError, SnapshotRequest, Zone, control,
};

use crate::stand::{CHUNK, Hand, Holder, Inbox, MIB, Opens, Wish, check_clean, fresh};

/// A store whose volume `v` has changed since its snapshot `v@s`.
fn changed_since(wish: &Wish) -> (Hand, OpenVolume) {
    let mut hand = Hand::new(wish);
    let volume = hand.volume("v", 8 * MIB);
    hand.write(&volume, 0, &fresh(1, 2 * CHUNK));
    hand.beside(|client| {
        let (volumes, name) = (vec!["v".to_owned()], "s".to_owned());
        client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
    });
    hand.write(&volume, 0, &fresh(2, 2 * CHUNK));
    (hand, volume)
}

fn roll_back(hand: &mut Hand) -> u64 {
    let (tag, done) = hand.done();
    let (snapshot, id) = ("v@s".to_owned(), None);
    hand.client.administer(control::Rollback { snapshot, volume: None, id }, done);
    tag
}

fn assert_rolled_back(mut hand: Hand) {
    let rolled_back = roll_back(&mut hand);
    hand.wait(rolled_back).unwrap();
    let volume = hand.beside(|client| client.volume("v").unwrap());
    assert_eq!(hand.read(&volume, 0, 2 * CHUNK as u32), fresh(1, 2 * CHUNK));
    drop(volume);
    check_clean(&hand.close());
}

#[test]
fn a_refusal_names_who_has_the_volume_open_and_since_when() {
    let (mut hand, volume) = changed_since(&Wish::default());
    drop(volume);
    let [first, second] = ["127.0.0.1:4711", "unix socket, pid 12"].map(|who| {
        let opener = Opener::new(who, 1_000_000_000);
        hand.beside(move |client| client.open_volume("v", opener).unwrap())
    });
    let opens = hand.beside(|client| client.opens("v")).unwrap();
    let whos: Vec<&str> = opens.iter().map(|open| open.opener.who.as_str()).collect();
    assert_eq!(whos, ["127.0.0.1:4711", "unix socket, pid 12"]);
    assert_eq!([first.open_id(), second.open_id()], [opens[0].id, opens[1].id]);
    let rolled_back = roll_back(&mut hand);
    let refused = hand.wait(rolled_back).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "volume v is in use by 127.0.0.1:4711 (since 2001-09-09 01:46:40 UTC); unix socket, pid 12 \
         (since 2001-09-09 01:46:40 UTC): disconnect its clients first"
    );
    assert_eq!(refused, RequestError::InUse { name: "v".to_owned(), opens });
    drop(first);
    let rolled_back = roll_back(&mut hand);
    assert!(hand.wait(rolled_back).is_err(), "one still has it open");
    drop(second);
    assert_eq!(hand.beside(|client| client.opens("v")).unwrap(), []);
    assert_rolled_back(hand);
}

/// What a client keeps of a volume that it has closed changes nothing: a handle, an answer.
#[test]
fn a_kept_handle_and_an_answer_that_is_not_sent_keep_nobody_from_rolling_back() {
    let (mut hand, volume) = changed_since(&Wish::default());
    let (read, done) = hand.done();
    hand.client.read(&volume, 0, CHUNK as u32, done);
    let answer = hand.wait(read).unwrap();
    let kept = volume.handle();
    drop(volume);
    assert_eq!(kept.opens(), [] as [OpenInfo; 0]);
    assert_rolled_back(hand);
    drop(answer);
}

#[test]
fn an_opening_nobody_waits_for_any_more_is_none() {
    let (mut hand, volume) = changed_since(&Wish::default());
    drop(volume);
    let (opened, done) = hand.done();
    let (name, opener) = ("v".to_owned(), Opener::new("a", 0));
    hand.client.administer(control::Open { name, opener }, done);
    let Reply::Volume(volume) = hand.wait(opened).unwrap() else { panic!("no volume") };
    assert_eq!(volume.opens().len(), 1);
    drop(volume);
    assert_rolled_back(hand);
}

#[test]
fn openings_follow_a_volume_to_another_name_and_snapshots_have_their_own() {
    let (mut hand, volume) = changed_since(&Wish::default());
    let snapshot = hand.beside(|client| client.volume("v@s").unwrap());
    hand.beside(|client| client.rename_volume("v", "w")).unwrap();
    let opens = |hand: &mut Hand, name: &'static str| hand.beside(|client| client.opens(name));
    assert_eq!(opens(&mut hand, "w").unwrap().len(), 1);
    assert_eq!(opens(&mut hand, "w@s").unwrap()[0].id, snapshot.open_id());
    let gone = RequestError::NoSuchVolume { name: "v".to_owned() };
    assert_eq!(opens(&mut hand, "v").unwrap_err(), gone);
    drop((volume, snapshot));
    check_clean(&hand.close());
}

/// Asks something of a volume, of which the sink hears as request 1.
type Ask = fn(&Client, &OpenVolume, Arc<Inbox>);

fn read(client: &Client, volume: &OpenVolume, sink: Arc<Inbox>) {
    client.read(volume, 0, CHUNK as u32, Done::new(sink, 1));
}

fn extents(client: &Client, volume: &OpenVolume, sink: Arc<Inbox>) {
    client.extents(volume, 0, CHUNK, 1, Done::new(sink, 1));
}

/// A request whose sender closes the volume before the core has looked at it: it is judged by the
/// volume as it is, so that has to stay. Each is asked for behind the rollback, and before it.
#[test]
fn requests_of_who_has_closed_the_volume_end_before_it_is_rolled_back() {
    let asks: [Ask; 5] = [
        read,
        extents,
        |client, volume, sink| {
            client.trim(volume, 512, CHUNK, false, Done::new(sink, 1));
        },
        |client, volume, sink| {
            let mut buf = client.buffer(512, 512);
            buf.bytes_mut().fill(9);
            let _ = client.write(volume, 512, buf, false, Done::new(sink, 1));
        },
        |client, volume, sink| {
            let mut buf = client.buffer(0, CHUNK as usize);
            buf.bytes_mut().fill(9);
            // Acknowledged by this call: it must not be judged by what the volume becomes.
            let _ = client.write(volume, 4 * MIB, buf, false, Done::new(sink, 1));
        },
    ];
    let under_way = RequestError::RequestsUnderWay { name: "v".to_owned() };
    for ask in asks {
        let (mut hand, volume) = changed_since(&Wish::default());
        let rolled_back = roll_back(&mut hand);
        ask(&hand.client, &volume, Arc::default());
        drop(volume);
        assert_eq!(hand.wait(rolled_back).unwrap_err(), under_way);
        hand.settle();
        assert_rolled_back(hand);
    }
}

/// Reads that the core has begun, and extents: the tables they look at are those of now.
#[test]
fn what_waits_for_the_disk_ends_before_its_volume_is_rolled_back() {
    let asks: [(Zone, Ask); 3] =
        [(Zone::Tables, read), (Zone::Data(0), read), (Zone::Tables, extents)];
    for (zone, ask) in asks {
        let wish = Wish::default();
        let (hand, volume) = changed_since(&wish);
        drop(volume);
        let (mut hand, held) = Holder::open(&wish, hand.close());
        // Before the first step: nothing that the engine does beside brings what is read here.
        held.hold(zone);
        let volume = hand.beside(|client| client.volume("v").unwrap());
        let asked = Arc::<Inbox>::default();
        ask(&hand.client, &volume, Arc::clone(&asked));
        hand.step_until("it waits for the disk", || held.count() > 0);
        drop(volume);
        let rolled_back = roll_back(&mut hand);
        hand.settle();
        let refused = hand.outcome(rolled_back).expect("an answer").unwrap_err();
        assert_eq!(refused, RequestError::RequestsUnderWay { name: "v".to_owned() });
        held.let_go();
        hand.step_until("it is answered", || !asked.0.lock().unwrap().is_empty());
        assert!(matches!(asked.0.lock().unwrap()[..], [(1, Ok(_))]));
        assert_rolled_back(hand);
    }
}
