use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::{prop_assert_eq, proptest};

use super::{LineError, SECTORS_MAX, parse_line, write_line};
use crate::digest::Digest;
use crate::request::{Direction, Grain, Request};

const MAIL: &str = "89967404265337 4253 nfsd 508516672 8 W 6 0 88b93b628d84082186026d9da044f173";

fn parse(line: &str) -> Result<Request, LineError> {
    let mut request = Request::default();
    parse_line(line.as_bytes(), &mut request).map(|()| request)
}

#[test]
fn a_line_of_each_form_is_a_request() {
    let mail = parse(MAIL).unwrap();
    assert_eq!((mail.time_ns, mail.pid, mail.process.as_str()), (89_967_404_265_337, 4253, "nfsd"));
    assert_eq!((mail.first_sector, mail.sectors), (508_516_672, 8));
    assert_eq!((mail.direction, mail.major, mail.minor), (Direction::Write, 6, 0));
    assert_eq!((mail.grain, mail.digests.len()), (Grain::Block, 1));
    assert_eq!(mail.digests[0].to_string(), "88b93b628d84082186026d9da044f173");
    let merged = parse(&format!("1 2 gzip 16 16 R 6 0 {:032x}{:032x}", 5, 6)).unwrap();
    assert_eq!((merged.grain, merged.direction), (Grain::Block, Direction::Read));
    assert_eq!(merged.digests, [5_u128, 6].map(|value| Digest(value.to_be_bytes())));
    let digits: String = (0..8).map(|sector| format!("{sector:032x}")).collect();
    let homes = parse(&format!("1 2 pdflush 440 8 W 6 0 {digits}")).unwrap();
    assert_eq!((homes.grain, homes.digests.len()), (Grain::Sector, 8));
    let single = parse(&format!("1 2 x 441 1 W 6 0 {:032x}", 7)).unwrap();
    assert_eq!((single.grain, single.digests.len()), (Grain::Sector, 1));
}

#[test]
fn what_is_wrong_with_a_line_is_said() {
    let zero = "0".repeat(32);
    for (line, error) in [
        (String::new(), LineError::Fields { found: 0 }),
        (MAIL.replace(" 6 0 ", " 6 "), LineError::Fields { found: 8 }),
        (format!("{MAIL} more"), LineError::Fields { found: 10 }),
        (MAIL.replace("4253", "-1"), LineError::Number { field: "process number" }),
        (MAIL.replace("4253", "+1"), LineError::Number { field: "process number" }),
        (MAIL.replace("89967404265337", &"9".repeat(30)), LineError::Number { field: "time" }),
        (MAIL.replace(" W ", " D "), LineError::Direction),
        (MAIL.replace(" 8 W", " 0 W"), LineError::Size { sectors: 0 }),
        (MAIL.replace(" 8 W", " 8200 W"), LineError::Size { sectors: 8200 }),
        (MAIL.replace(" 8 W", " 16 W"), LineError::Digests { digits: 32, sectors: 16 }),
        (format!("1 2 x 3 8 W 6 0 {zero}"), LineError::Misaligned { first_sector: 3 }),
        (
            format!("1 2 x {} 8 W 6 0 {zero}", u64::MAX),
            LineError::Beyond { first_sector: u64::MAX },
        ),
        (MAIL.replace("88b9", "88g9"), LineError::NotHexadecimal),
    ] {
        assert_eq!(parse(&line), Err(error), "{line}");
    }
}

fn any_request() -> impl Strategy<Value = Request> {
    let grain = prop_oneof![
        proptest::strategy::Just(Grain::Block),
        proptest::strategy::Just(Grain::Sector)
    ];
    let digests = (grain, vec(any::<[u8; 16]>().prop_map(Digest), 1..20));
    let names = (any::<u64>(), any::<u32>(), "[a-z0-9/_.-]{1,20}", any::<bool>());
    let place = (0..1_u64 << 50, any::<u32>(), any::<u32>());
    (digests, names, place).prop_map(|((grain, digests), (time_ns, pid, process, reads), place)| {
        let (first, major, minor) = place;
        let sectors = digests.len() as u32 * grain.sectors() as u32;
        let first_sector = first / grain.sectors() * grain.sectors();
        let direction = if reads { Direction::Read } else { Direction::Write };
        Request {
            time_ns,
            pid,
            process,
            first_sector,
            sectors,
            direction,
            major,
            minor,
            grain,
            digests,
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(request in any_request()) {
        let mut line = Vec::new();
        write_line(&mut line, &request).unwrap();
        prop_assert_eq!(parse(std::str::from_utf8(&line).unwrap()), Ok(request));
    }

    #[test]
    fn no_line_is_too_much(line in vec(any::<u8>(), 0..300)) {
        let mut request = Request::default();
        let _ = parse_line(&line, &mut request);
    }

    /// A request with one byte changed is refused, or is one that keeps to the bounds.
    #[test]
    fn a_request_that_is_believed_keeps_to_the_bounds(
        request in any_request(),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut line = Vec::new();
        write_line(&mut line, &request).unwrap();
        let at = at.index(line.len());
        line[at] = byte;
        let mut read = Request::default();
        if parse_line(&line, &mut read).is_ok() {
            let sectors = u64::from(read.sectors);
            assert!((1..=u64::from(SECTORS_MAX)).contains(&sectors));
            prop_assert_eq!(read.digests.len() as u64 * read.grain.sectors(), sectors);
            prop_assert_eq!(read.first_sector % read.grain.sectors(), 0);
            assert!(read.offset_bytes().checked_add(read.length_bytes()).is_some());
        }
    }
}
