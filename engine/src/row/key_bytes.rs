//! Keys that are stored in pieces, and put together when they are needed.

/// A key that is stored in pieces.
pub(crate) trait KeyInPieces {
    /// The whole key.
    fn whole(&self) -> &[u8];

    /// The key's length.
    fn length(&self) -> usize;

    /// Fills `out` with the key from byte `from` on; false if the key is too short.
    fn copy_to(&self, from: usize, out: &mut [u8]) -> bool;

    /// The `n` bytes of the key from byte `from` on, at most 16, if one load can read them.
    ///
    /// The bytes behind them are undefined.
    #[inline]
    fn word(&self, _from: usize, _n: usize) -> Option<u128> {
        None
    }
}

/// A part of a key.
pub(crate) struct PartOfKey<'a, K> {
    pub key: &'a K,
    pub at: usize,
    pub len: usize,
}

impl<K: KeyInPieces> PartOfKey<'_, K> {
    /// As [`KeyInPieces::copy_to`], for the part.
    #[inline]
    pub fn copy_to(&self, from: usize, out: &mut [u8]) -> bool {
        from + out.len() <= self.len && self.key.copy_to(self.at + from, out)
    }

    /// As [`KeyInPieces::word`], for the part.
    #[inline]
    pub fn word(&self, from: usize, n: usize) -> Option<u128> {
        let has = from + n <= self.len;
        has.then(|| self.key.word(self.at + from, n)).flatten()
    }
}

/// A key, or an object that has it in pieces.
#[derive(Clone, Copy)]
pub(crate) enum KeyBytes<'a> {
    Here(&'a [u8]),
    There(&'a dyn KeyInPieces),
}

impl<'a> KeyBytes<'a> {
    /// The whole key.
    #[inline]
    pub fn whole(self) -> &'a [u8] {
        match self {
            KeyBytes::Here(key) => key,
            KeyBytes::There(key) => key.whole(),
        }
    }

    /// Puts the key from byte `from` on into `out`; nothing if the key ends before.
    #[inline]
    pub fn copy_rest(self, from: usize, out: &mut Vec<u8>) {
        out.clear();
        match self {
            KeyBytes::Here(key) => out.extend_from_slice(key.get(from..).unwrap_or(&[])),
            KeyBytes::There(key) => {
                out.resize(key.length().saturating_sub(from), 0);
                key.copy_to(from, out);
            }
        }
    }
}

impl KeyInPieces for &[u8] {
    fn whole(&self) -> &[u8] {
        self
    }

    fn length(&self) -> usize {
        self.len()
    }

    fn copy_to(&self, from: usize, out: &mut [u8]) -> bool {
        match self.get(from..).and_then(|rest| rest.get(..out.len())) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}
