//! Lark's event encryption and signature.
//!
//! Source: protocol notes of the open platform ("encrypt strategy"); key = SHA-256 of the Encrypt Key's UTF-8
//! bytes, AES-256-CBC with PKCS#7, the IV in front of the ciphertext, base64 around both; signature = SHA-256
//! over timestamp, nonce, Encrypt Key and raw body, without delimiters.

use aes::Aes256;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, InnerIvInit, KeyInit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

const BLOCK: usize = 16;

/// The Encrypt Key, with the cipher's round keys computed once.
pub(super) struct EncryptKey {
    secret: SecretString,
    cipher: Aes256,
}

impl EncryptKey {
    pub(super) fn new(secret: SecretString) -> Self {
        let digest = Sha256::digest(secret.expose_secret().as_bytes());
        Self {
            secret,
            cipher: Aes256::new(&digest),
        }
    }

    /// `X-Lark-Signature` as raw bytes.
    pub(super) fn signature(&self, timestamp: &[u8], nonce: &[u8], body: &[u8]) -> [u8; 32] {
        Sha256::new()
            .chain_update(timestamp)
            .chain_update(nonce)
            .chain_update(self.secret.expose_secret().as_bytes())
            .chain_update(body)
            .finalize()
            .into()
    }

    /// What is inside `encrypt`. One answer for every fault: a caller that could tell bad padding from a bad length
    /// would be a padding oracle.
    ///
    /// # Errors
    /// The bytes as they were decrypted, when the padding is wrong; none of them when nothing could be decrypted.
    pub(super) fn decrypt(&self, text: &str) -> Result<Vec<u8>, Vec<u8>> {
        let mut blob = STANDARD.decode(text).map_err(|_| Vec::new())?;
        let Some((iv, ciphertext)) = blob.split_first_chunk_mut::<BLOCK>() else {
            return Err(Vec::new());
        };
        // Refuses nothing at all, lengths that are no multiple of the block, a pad of 0 or over 16, and unequal pad bytes.
        let unpadded = cbc::Decryptor::inner_iv_init(self.cipher.clone(), &(*iv).into())
            .decrypt_padded::<Pkcs7>(ciphertext)
            .map(<[u8]>::len);
        blob.drain(..BLOCK);
        match unpadded {
            Ok(length) => {
                blob.truncate(length);
                Ok(blob)
            }
            Err(_) => Err(blob),
        }
    }
}

#[cfg(test)]
mod tests {
    use aes::cipher::BlockModeEncrypt;
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> EncryptKey {
        EncryptKey::new(SecretString::from(text))
    }

    /// M-1: the known answer that the platform's documentation publishes.
    #[test]
    fn published_known_answer() {
        let plain = key("test key").decrypt("P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk=");
        assert_eq!(plain, Ok(b"hello world".to_vec()));
    }

    /// M-1: the four ways in which padding can be wrong are refused alike, and so are odd lengths.
    #[test]
    fn broken_ciphertexts() {
        let key = key("k");
        let raw = |last: [u8; BLOCK]| {
            let mut block = last;
            cbc::Encryptor::inner_iv_init(key.cipher.clone(), &[7; BLOCK].into())
                .encrypt_padded::<aes::cipher::block_padding::NoPadding>(&mut block, BLOCK)
                .unwrap();
            STANDARD.encode([&[7; BLOCK][..], &block].concat())
        };
        let mut good = [b'x'; BLOCK];
        good[14..].fill(2);
        assert_eq!(key.decrypt(&raw(good)), Ok(vec![b'x'; 14]));
        let (mut zero, mut over, mut unequal) = (good, good, good);
        zero[15] = 0;
        over[15] = 17;
        unequal[14] = 3;
        for bad in [zero, over, unequal] {
            assert!(key.decrypt(&raw(bad)).is_err());
        }
        let text = raw(good);
        let bytes = STANDARD.decode(&text).unwrap();
        for length in [0, 1, 15, 16, 17, 31] {
            assert!(key.decrypt(&STANDARD.encode(&bytes[..length])).is_err(), "{length}");
        }
        for odd in ["***not base64***", &format!("{text} "), text.trim_end_matches('=')] {
            assert!(key.decrypt(odd).is_err(), "{odd}");
        }
    }

    proptest! {
        /// M-1: what was encrypted comes back, whatever its length.
        #[test]
        fn round_trip(plain in any::<Vec<u8>>(), iv in any::<[u8; BLOCK]>()) {
            let key = key("round trip");
            let ciphertext = cbc::Encryptor::inner_iv_init(key.cipher.clone(), &iv.into()).encrypt_padded_vec::<Pkcs7>(&plain);
            prop_assert_eq!(key.decrypt(&STANDARD.encode([&iv[..], &ciphertext].concat())), Ok(plain));
        }
    }
}
