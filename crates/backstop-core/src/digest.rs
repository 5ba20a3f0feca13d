//! SHA-256, as raw bytes and as hex: the one place that hashes content.

use sha2::Digest as _;

/// A SHA-256 digest of everything that was added to it.
#[derive(Clone, Default)]
pub struct Sha256(sha2::Sha256);

impl Sha256 {
    /// A digest of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The digest of these bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        let mut digest = Self::new();
        digest.update(bytes);
        digest
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes.as_ref());
    }

    /// The 32 bytes.
    pub fn bytes(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    /// The 64 hexadecimal digits.
    pub fn hex(self) -> String {
        hex(&self.bytes())
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256::new().hex(), empty);
        let mut parts = Sha256::of("ab");
        parts.update("c");
        assert_eq!(parts.hex(), Sha256::of("abc").hex());
    }
}
