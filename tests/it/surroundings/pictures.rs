//! Images that take little on the wire and much when they are opened: what the whole process holds meanwhile, as the machine sees it.

use super::{block, file, request};
use crate::support::fake_model::say;
use crate::support::platform::On;
use crate::support::world::{DIRECT, World};

/// What the process may have of its own: a small container.
const HAS: u64 = 512 << 20;
/// interface §10: 256 MiB for all images that are open at a time. Beside them: the files themselves, and what the memory's bookkeeping keeps.
const MOST_KIB: u64 = (256 + 48) << 10;

/// interface §10: the images with which outsiders could end the process are not opened; the largest that are opened, in many chats at a time,
/// keep within the bound. Every task is answered.
#[tokio::test(flavor = "multi_thread")]
async fn images_of_many_chats_keep_within_the_bound() {
    let on = On::Slack;
    let mut world = World::process_on(on, &[("MODEL__VISION", "true")], None, |_| say("好的。")).await;
    world.child().may_have(HAS);
    let before = world.child().peak_kib();
    let bombs = [
        ("rgba.png", png(8180, 8, 6, 4)),
        ("rgba16.png", png(5790, 16, 6, 8)),
        ("scans.jpg", progressive(9400)),
        ("lossless.webp", webp(8180)),
        ("gray.png", png(11_990, 8, 0, 1)),
    ];
    ask_about(&world, "d1", &bombs).await;
    world.hears(on.direct("d1"), "好的").await;
    let told = block(&request(&world, 0), "<attached-files>").unwrap();
    assert_eq!(told.matches("stored in the workspace").count(), 5, "{told}");
    assert!(!told.contains("its picture follows"), "{told}");
    let refused = world.child().peak_kib() - before;

    let large = [
        png(6300, 8, 6, 4),
        png(6300, 8, 0, 1),
        png(5000, 8, 6, 4),
        progressive(3200),
        webp(4000),
    ];
    let chats = ["d2", "d3", "d4", "d5", "d6"];
    for (chat, image) in chats.iter().zip(large) {
        ask_about(&world, chat, &[("large.png", image)]).await;
    }
    for chat in chats {
        world.hears(on.direct(chat), "好的").await;
    }
    let told = (1..=5).map(|number| block(&request(&world, number), "<attached-files>").unwrap());
    // Where the machine is slow not all are: each has ten seconds.
    let shown = told.filter(|told| told.contains("its picture follows")).count();
    let opened = world.child().peak_kib() - before;
    println!(
        "images: {before} KiB before, {refused} KiB more for those that are not opened, {opened} KiB more for the largest, of which {shown} are shown"
    );
    assert!(refused <= 32 << 10, "{refused} KiB for files of 4 MB together");
    assert!(opened >= 64 << 10, "{opened} KiB: none of them was opened");
    assert!(opened <= MOST_KIB, "{opened} KiB, at most {MOST_KIB}");
    world.end().await;
}

/// Somebody sends images with a request in the direct chat `name`.
async fn ask_about(world: &World, name: &str, images: &[(&str, Vec<u8>)]) {
    let named = |at: usize| format!("F{name}x{at}");
    let ids: Vec<String> = (0..images.len()).map(named).collect();
    let sent: Vec<_> = ids
        .iter()
        .zip(images)
        .map(|(id, (name, bytes))| (id.as_str(), file(name, "image/png", bytes)))
        .collect();
    world
        .sends(world.on.user(name), world.on.direct(name), "看看这个", DIRECT, &sent)
        .await;
}

/// Metadata that says: lies on its side.
const TURNED: &[u8] = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";

/// Black, `depth` bits a sample, of this kind of color, which has `a_pixel` bytes. Turned.
fn png(side: u32, depth: u8, color: u8, a_pixel: usize) -> Vec<u8> {
    let [s0, s1, s2, s3] = side.to_be_bytes();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |name: &[u8; 4], data: &[u8]| {
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        let named = [name, data].concat();
        bytes.extend_from_slice(&named);
        bytes.extend(crc(&named).to_be_bytes());
    };
    chunk(b"IHDR", &[s0, s1, s2, s3, s0, s1, s2, s3, depth, color, 0, 0, 0]);
    chunk(b"eXIf", TURNED);
    chunk(b"IDAT", &zeros(side as usize * (1 + side as usize * a_pixel)));
    chunk(b"IEND", &[]);
    bytes
}

/// So many zeros in zlib's format, with its fixed codes: one zero, then repetitions of it.
fn zeros(length: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    // The last block, with fixed codes.
    bits.push(0b110, 3);
    let literal = |bits: &mut Bits| bits.push(0b0011_0000, 8);
    literal(&mut bits);
    for _ in 0..(length - 1) / 258 {
        // 258 bytes from one byte back.
        bits.push(0b1_1000_1010_0000, 13);
    }
    for _ in 0..(length - 1) % 258 {
        literal(&mut bits);
    }
    // The end.
    bits.push(0, 7);
    let sum = u32::try_from(length % 65_521).unwrap() << 16 | 1;
    [&[0x78, 0x9c], bits.bytes().as_slice(), &sum.to_be_bytes()].concat()
}

/// Codes go in from their highest bit, into bytes from their lowest.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    byte: u8,
    filled: u32,
}

impl Bits {
    fn push(&mut self, code: u32, length: u32) {
        for at in (0..length).rev() {
            self.byte |= u8::from(code >> at & 1 == 1) << self.filled;
            self.filled += 1;
            if self.filled == 8 {
                self.bytes.push(std::mem::take(&mut self.byte));
                self.filled = 0;
            }
        }
    }

    fn bytes(mut self) -> Vec<u8> {
        self.bytes.push(self.byte);
        self.bytes
    }
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// A JPEG in scans, with the first coefficients alone, all of which are 0. Turned.
fn progressive(side: u16) -> Vec<u8> {
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
fn webp(side: u32) -> Vec<u8> {
    // Each part with its length in bits, the first one lowest: sides, transparency, no transforms, no cache, no groups, five codes.
    let parts = [(side - 1, 14), (side - 1, 14), (1, 1), (0, 3), (0, 3)];
    let (mut bits, mut at) = (0_u128, 0);
    for (value, length) in parts.into_iter().chain([(1, 4); 5]) {
        bits |= u128::from(value) << at;
        at += length;
    }
    let data = [[0x2f].as_slice(), &bits.to_le_bytes()[..9]].concat();
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let head = [b"RIFF".as_slice(), &length(12 + data.len()), b"WEBPVP8L", &length(data.len())].concat();
    [head, data].concat()
}
