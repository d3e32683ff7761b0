//! Images that take little on the wire and much when they are opened: what the whole process holds meanwhile, as the machine sees it.

use super::{block, file, request};
use crate::support::fake_model::say;
use crate::support::platform::On;
use crate::support::world::{DIRECT, World};
use made::{TURNED, progressive, webp};

#[path = "../../../crates/gateway/src/surroundings/picture/tests/made.rs"]
mod made;

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
        ("lossless.webp", webp(8180, true)),
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
        webp(4000, true),
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
