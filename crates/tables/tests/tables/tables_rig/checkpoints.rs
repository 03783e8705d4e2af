//! The tables that are mirrored in memory, checkpoints, and opening from them.

use std::collections::BTreeMap;

use format::catalog::{CatalogEntry, Dedup, VolumeState};
use format::container_page::{ContainerEntry, ContainerState};
use format::map_page;
use format::root::TREES;
use format::units::{ContainerId, Lba, Pbn, TreeId, VolumeId};
use tables::{CatalogTable, ContainerTable, FreePbns, HashPbn, lba_pbn, pbn_pba};

use super::{CONTAINERS, OPTIONS, Rig, SEED, fingerprint, hash_options};
use crate::device::{Checkpoint, Trees, freeze, load_hash};

impl Rig {
    pub(crate) fn create_volume(&mut self) {
        let id = VolumeId(self.model.next_volume);
        self.model.next_volume += 1;
        let name = format!("volume-{id}");
        self.catalog.insert(CatalogEntry {
            id,
            name: name.clone(),
            size_bytes: 1 << 40,
            mapped_chunks: 0,
            state: VolumeState::Live,
            read_only: false,
            quota_bytes: 0,
            dedup: Dedup::On,
            compression: None,
            reservation_bytes: 0,
            domain: None,
            root: Default::default(),
            kind: Default::default(),
            flags: Default::default(),
            lineage: Default::default(),
            created_generation: self.generation,
        });
        self.store.add_tree(TreeId::volume(id), Default::default());
        self.model.volumes.insert(id, name);
    }

    pub(crate) fn rename_volume(&mut self, volume: u32) {
        let Some(id) = self.volume(volume) else { return };
        let name = format!("other-{id}-{}", self.generation);
        self.catalog.rename(id, &name);
        assert_eq!(self.catalog.by_name(&name).map(|entry| entry.id), Some(id));
        assert!(
            self.catalog.by_name(&self.model.volumes[&id]).is_none()
                || self.model.volumes[&id] == name
        );
        self.model.volumes.insert(id, name);
    }

    pub(crate) fn drop_volume(&mut self, volume: u32) {
        let Some(id) = self.volume(volume) else { return };
        self.catalog.mark_deleting(id);
        assert!(self.catalog.by_name(&self.model.volumes[&id]).is_none());
        self.unmap(id, 0, u64::MAX);
        self.catalog.remove(id);
        assert!(self.store.drop_tree(TreeId::volume(id)), "the map is empty");
        self.model.volumes.remove(&id);
    }

    pub(crate) fn use_container(&mut self, id: u32, bytes: u32) {
        let entry = self.model.containers.entry(id).or_default();
        let container = ContainerId(id);
        match entry.state {
            ContainerState::Free => {
                self.containers.open(container, bytes);
                *entry = ContainerEntry { state: ContainerState::Open, sequence: bytes, ..*entry };
            }
            ContainerState::Open if bytes.is_multiple_of(2) => {
                self.containers.fill_to(container, bytes);
                self.containers.change_live(container, bytes / 2, 0);
                entry.used_bytes = entry.used_bytes.max(bytes);
                entry.live_bytes += bytes / 2;
            }
            ContainerState::Open => {
                self.containers.seal(container, 4 << 20);
                entry.state = ContainerState::Sealed;
                entry.used_bytes = 4 << 20;
            }
            ContainerState::Sealed if entry.live_bytes > 0 => {
                self.containers.change_live(container, 0, entry.live_bytes);
                entry.live_bytes = 0;
            }
            ContainerState::Sealed => {
                self.containers.free(container);
                *entry = ContainerEntry::default();
            }
        }
        assert_eq!(self.containers.get(container), *entry);
    }

    pub(crate) fn trees(&self) -> Vec<TreeId> {
        let volumes = self.model.volumes.keys().map(|&id| TreeId::volume(id));
        (0..TREES as u32).map(TreeId).chain(volumes).collect()
    }

    pub(crate) fn checkpoint(&mut self) {
        let (containers, catalog, hash) = (&self.containers, &self.catalog, &self.hash);
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            let here = containers.want_store(store, pins, reads)?;
            let here = here & hash.want_store(store, pins, reads)?;
            Ok(here & catalog.want_store(store, pins, reads)?)
        });
        self.containers.store(&mut self.store);
        self.hash.store(&mut self.store);
        let writes = self.store.freeze_trees(self.generation).unwrap();
        self.device.submit(writes);
        for id in self.catalog.ids() {
            self.catalog.set_root(id, self.store.tree_root(TreeId::volume(id)));
        }
        self.catalog.store(&mut self.store);
        let trees = self.trees();
        let trees: Trees =
            freeze(&mut self.store, &mut self.device, self.generation, &trees).unwrap();
        self.generation += 1;
        self.store.release_pins(pins);
        self.model.shape = self.hash.shape();
        self.model.ends = (self.free.head(), self.free.tail());
        self.model.slots = self.catalog.slots();
        let checkpoint = Checkpoint { trees, model: self.model.clone() };
        self.device.checkpoint(&mut self.store, checkpoint, |leaves, model| {
            let mapped = leaves
                .iter()
                .filter_map(|((tree, leaf), page)| Some((tree.volume_id()?, leaf, page)));
            let entries = mapped.flat_map(|(volume, leaf, page)| {
                (0..677).map(move |slot| {
                    ((volume, leaf * 677 + slot as u64), map_page::get(page, slot))
                })
            });
            let map: BTreeMap<_, _> = entries.filter(|(_, pbn)| !pbn.is_none()).collect();
            assert_eq!(map, model.map);
        });
    }

    pub(crate) fn reopen(&mut self) {
        self.device.in_flight.clear();
        self.model = self.device.roots.last().unwrap().model.clone();
        self.store = self.device.open(OPTIONS);
        self.hash = HashPbn::new(self.model.shape, SEED, hash_options());
        load_hash(&mut self.hash, &mut self.store, &mut self.device);
        self.free = FreePbns::new(self.model.ends.0, self.model.ends.1);
        self.containers = ContainerTable::new(CONTAINERS);
        self.catalog = CatalogTable::new(self.model.slots);
        let (containers, catalog) = (&self.containers, &self.catalog);
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            let here = containers.want_load(store, pins, reads)?;
            Ok(here & catalog.want_load(store, pins, reads)?)
        });
        self.containers.load(&self.store).unwrap();
        self.catalog.load(&self.store).unwrap();
        self.store.release_pins(pins);
        let trees = &self.device.roots.last().unwrap().trees;
        for entry in self.catalog.iter() {
            assert_eq!(trees.get(&TreeId::volume(entry.id)), Some(&entry.root));
        }
        self.check_small_tables();
    }

    pub(crate) fn check_small_tables(&self) {
        let volumes: BTreeMap<VolumeId, String> =
            self.catalog.iter().map(|entry| (entry.id, entry.name.clone())).collect();
        assert_eq!(volumes, self.model.volumes);
        for (id, entry) in self.containers.iter() {
            let expected = self.model.containers.get(&id.0).copied().unwrap_or_default();
            assert_eq!(entry, expected);
        }
    }

    pub(crate) fn check_all(&mut self) {
        self.check_small_tables();
        assert_eq!(self.free.len(), self.model.free.len() as u64);
        for (&pbn, &(content, entry)) in &self.model.chunks {
            let (hash, key) = (&self.hash, fingerprint(content));
            let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
                let here = pbn_pba::want(store, pins, Pbn(pbn), reads)?;
                Ok(here & hash.want_lookup(store, pins, &key, reads)?)
            });
            assert_eq!(pbn_pba::get(&self.store, Pbn(pbn)), Some(entry));
            let (mut entries, several) = (Vec::new(), [Pbn(pbn), Pbn(pbn), Pbn::NONE, Pbn(pbn)]);
            pbn_pba::get_all(&mut self.store, &several, &mut entries);
            assert_eq!(entries, [Some(entry), Some(entry), None, Some(entry)]);
            assert_eq!(self.hash.lookup(&self.store, &key), Some(Pbn(pbn)));
            self.store.release_pins(pins);
        }
        for (&(volume, lba), &pbn) in &self.model.map {
            let tree = TreeId::volume(volume);
            let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
                store.want(pins, tree, lba_pbn::place(Lba(lba)).0, reads)
            });
            assert_eq!(lba_pbn::get(&self.store, tree, Lba(lba)), pbn);
            self.store.release_pins(pins);
        }
    }
}
