//! Images that are small as files and large when they are opened, byte by byte. The tests in `tests/it` use them, too.

/// Metadata that says: lies on its side.
pub(crate) const TURNED: &[u8] = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";

/// A JPEG in scans, with the first coefficients alone, all of which are 0. Turned.
pub(crate) fn progressive(side: u16) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    let mut segment = |marker: u8, body: &[u8]| {
        bytes.extend([0xff, marker]);
        bytes.extend(u16::try_from(body.len() + 2).unwrap().to_be_bytes());
        bytes.extend_from_slice(body);
    };
    segment(0xe1, &[b"Exif\0\0".as_slice(), TURNED].concat());
    segment(0xdb, &[[0].as_slice(), &[1; 64]].concat());
    let [high, low] = side.to_be_bytes();
    segment(0xc2, &[8, high, low, high, low, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    // One code, of one bit, for a difference of no bits.
    segment(0xc4, &[[0, 1].as_slice(), &[0; 15], &[0]].concat());
    segment(0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 0, 0]);
    let blocks = usize::from(side).div_ceil(8).pow(2);
    bytes.extend(vec![0; blocks * 3 / 8 + 1]);
    bytes.extend([0xff, 0xd9]);
    bytes
}

/// A WebP without loss, with codes of no bits: the same pixel everywhere.
pub(crate) fn webp(side: u32, transparent: bool) -> Vec<u8> {
    // Each part with its length in bits, the first one lowest: sides, transparency, no transforms, no cache, no groups, five codes.
    let parts = [(side - 1, 14), (side - 1, 14), (u32::from(transparent), 1), (0, 3), (0, 3)];
    let codes = [(1, 4); 5];
    let (mut bits, mut at) = (0_u128, 0);
    for (value, length) in parts.into_iter().chain(codes) {
        bits |= u128::from(value) << at;
        at += length;
    }
    let data = [[0x2f].as_slice(), &bits.to_le_bytes()[..9]].concat();
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    [
        b"RIFF".as_slice(),
        &length(12 + data.len()),
        b"WEBP",
        b"VP8L",
        &length(data.len()),
        &data,
    ]
    .concat()
}
