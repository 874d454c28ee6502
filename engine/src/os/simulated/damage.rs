//! Damage by a device to bytes that it has confirmed: other bits, old bytes, bytes of another place.

use std::path::Path;

use super::content::{Bytes, Content};
use super::{Moment, SimulatedOs};

impl SimulatedOs {
    /// Changes bytes of a file as a failing device does, durable and live; does nothing if there is no such file.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        self.damage_bytes(path, |bytes| {
            let mut all = bytes.to_vec();
            change(&mut all);
            bytes.resize(all.len());
            bytes.write(0, &all);
        });
    }

    /// Makes each later read of this byte fail, as in a bad sector, on this machine.
    pub fn spoil(&self, path: &Path, offset: u64) {
        let spoilt = (path.to_owned(), offset);
        self.machine.lock().unreadable.push(spoilt);
    }

    /// Overwrites bytes of a file, durable and live, without making it longer.
    pub fn overwrite(&self, path: &Path, offset: u64, data: &[u8]) {
        self.damage_bytes(path, |bytes| {
            let offset = (offset as usize).min(bytes.len());
            let data = &data[..data.len().min(bytes.len() - offset)];
            bytes.write(offset, data);
        });
    }

    fn damage_bytes(&self, path: &Path, change: impl FnOnce(&mut Bytes)) {
        let mut machine = self.machine.lock();
        let disk = &mut machine.disk;
        let Some(file) = disk.file(path) else { return };
        let content = disk.content_mut(file);
        let mut bytes = content.live.clone();
        change(&mut bytes);
        *content = Content::synced(bytes);
        machine.used = machine.disk.used();
    }

    /// The bytes of a file as the process sees them, from `offset`, fewer if the file ends; none if there is no such
    /// file.
    pub fn bytes(&self, path: &Path, offset: u64, len: usize) -> Vec<u8> {
        bytes_of(self.machine.lock().disk.live_bytes(path), offset, len)
    }
}

impl Moment {
    /// The bytes of a file as the process saw them then, from `offset`, fewer if the file ended; none if there was no
    /// such file.
    pub fn bytes(&self, path: &Path, offset: u64, len: usize) -> Vec<u8> {
        bytes_of(self.disk.live_bytes(path), offset, len)
    }
}

fn bytes_of(bytes: Option<&Bytes>, offset: u64, len: usize) -> Vec<u8> {
    let mut found = vec![0; len];
    let n = bytes.map_or(0, |bytes| bytes.read(offset as usize, &mut found));
    found.truncate(n);
    found
}
