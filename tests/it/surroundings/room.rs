//! The room for files of all people, which one of them cannot take alone.

use std::fs;
use std::path::Path;

use super::{block, file, request};
use crate::support::fake_model::say;
use crate::support::platform::On;
use crate::support::world::{DIRECT, World};

const GIB: u64 = 1 << 30;

/// interface §10: one person has at most a quarter of the room, whatever the chat. Their oldest files go; another person's file is taken.
#[tokio::test(flavor = "multi_thread")]
async fn one_person_takes_no_room_of_others() {
    let world = World::process_on(On::Slack, &[], None, |_| say("好的。")).await;
    let stored = world.folder.path().join("workspace/attachments");
    for (number, chat) in ["m1", "m2", "m3", "m4", "m5"].into_iter().enumerate() {
        let told = sends_a_file(&world, "mallory", chat, number).await;
        assert!(told.contains("stored in the workspace"), "{told}");
        for file in files(&stored) {
            // Sparse: nothing of it is on the disk.
            fs::File::options().write(true).open(file).unwrap().set_len(GIB).unwrap();
        }
    }
    let told = sends_a_file(&world, "alice", "a1", 5).await;
    assert!(told.contains("stored in the workspace"), "{told}");
    let mut lengths: Vec<u64> = files(&stored).iter().map(|file| fs::metadata(file).unwrap().len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [3, GIB], "the newest of mallory's, and alice's");
    world.end().await;
}

/// The files of all tasks, without those whose names are ours.
fn files(stored: &Path) -> Vec<std::path::PathBuf> {
    let tasks = fs::read_dir(stored).unwrap().map(|task| task.unwrap().path());
    let all = tasks.flat_map(|task| fs::read_dir(task).unwrap().map(|file| file.unwrap().path()));
    all.filter(|file| file.ends_with("a.txt")).collect()
}

/// Gives what the model is told of the file.
async fn sends_a_file(world: &World, person: &str, chat: &str, number: usize) -> String {
    let (user, place) = (world.on.user(person), world.on.direct(chat));
    world
        .sends(user, place, "看看这个", DIRECT, &[(chat, file("a.txt", "text/plain", b"abc"))])
        .await;
    world.hears(place, "好的").await;
    block(&request(world, number), "<attached-files>").unwrap()
}
