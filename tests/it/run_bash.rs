//! `run_bash` with real commands: what they see, what they may use, how they end, and that nothing of them stays.

use countersign_agent::tools::Reach;
use std::path::Path;
use std::time::{Duration, Instant};

use countersign_agent::domain::EffectClass;
use countersign_agent::tools::{CallHandle, HaltReason, ToolError, ToolOutput, Toolbox};
use rustix::process::{Pid, test_kill_process};
use serde_json::json;

use crate::support::api::eventually;
use crate::support::workspace::boot;

fn toolbox(folder: &Path) -> Toolbox {
    let mut boot = boot(Some(folder));
    boot.tools.run_bash = true;
    countersign_gateway::app::toolbox(&boot, &Reach::default()).unwrap()
}

async fn run_until(folder: &Path, command: &str, call: &CallHandle) -> ToolOutput {
    let tool = toolbox(folder).get("run_bash").unwrap();
    tool.run(&json!({ "command": command }), call).await.unwrap()
}

async fn run(folder: &Path, command: &str) -> ToolOutput {
    run_until(folder, command, &CallHandle::default()).await
}

/// Its text without the time that it took, where it says so.
fn words(output: &ToolOutput) -> String {
    match output.text.rsplit_once(" (") {
        Some((words, time)) if output.exit_code.is_none() => {
            let seconds = time.strip_suffix("s)").unwrap();
            assert!(seconds.parse::<f64>().is_ok() && seconds.contains('.'), "{time}");
            words.to_owned()
        }
        _ => output.text.clone(),
    }
}

/// The process that wrote its number into this file of the workspace.
async fn process(folder: &Path, file: &str) -> Pid {
    let written = || async {
        let number = std::fs::read_to_string(folder.join(file)).ok()?;
        Pid::from_raw(number.strip_suffix('\n')?.parse().ok()?)
    };
    eventually(file, written).await
}

/// Waits until it is gone; one that only its parent has not looked after yet is.
async fn gone(pid: Pid) {
    let gone = || async {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
        let dead = stat.map_or(true, |stat| {
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
        });
        dead.then_some(())
    };
    eventually("the end of a process", gone).await;
}

fn is_alive(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

/// design: interface §4, standard output, then standard error if there is any; an exit code goes beside it, a signal into it.
#[tokio::test]
async fn the_result_is_output_errors_and_the_exit() {
    let folder = tempfile::tempdir().unwrap();
    for (command, said, code) in [
        ("echo 你好", "你好", Some(0)),
        ("printf out; printf err >&2; exit 3", "out\nerr", Some(3)),
        ("true", "", Some(0)),
        ("echo x; kill -9 $$", "x\nexit: killed by signal 9", None),
        ("echo a; false; echo b", "a\nb", Some(0)),
        ("cat", "", Some(0)),
    ] {
        let output = run(folder.path(), command).await;
        assert_eq!(words(&output), said, "{command}");
        assert_eq!((output.exit_code, output.truncated), (code, false), "{command}");
    }
    let output = run(folder.path(), "if then").await;
    assert!(
        output.text.contains("syntax error") && output.exit_code == Some(2),
        "{}",
        output.text
    );
    let tool = toolbox(folder.path()).get("run_bash").unwrap();
    assert_eq!(tool.spec().effect, EffectClass::Destructive);
    for arguments in [
        json!({}),
        json!({"command": 1}),
        json!({"command": "true", "cwd": "/"}),
        json!({"command": "a\0b"}),
    ] {
        let refusal = tool.run(&arguments, &CallHandle::default()).await.unwrap_err();
        assert!(matches!(refusal, ToolError::TellModel(_)), "{arguments}");
    }
}

/// design: issue part E, the command sees no variable of ours, stands in the workspace and has it as its home.
#[tokio::test]
async fn nothing_of_our_environment_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap().display().to_string();
    let known = ["HOME", "LANG", "PATH", "PWD", "SHLVL", "TERM", "_"];
    assert!(
        std::env::vars().any(|(name, _)| !known.contains(&name.as_str())),
        "this process has variables of its own"
    );
    let output = run(folder.path(), "env | sort; cd; pwd").await;
    let names: Vec<&str> = output
        .text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, known);
    assert!(
        output.text.contains(&format!("HOME={home}\n")) && output.text.contains(&format!("PWD={home}\n")),
        "{}",
        output.text
    );
    assert!(output.text.ends_with(&format!("\n{home}")), "{}", output.text);
    let output = run(folder.path(), "echo x > made.txt; ls; ls -l /proc/self/fd | grep -c -- '->'").await;
    // Its three, and the listing's own: no file, socket or pipe of ours.
    assert_eq!(output.text, "made.txt\n4");
}

/// design: issue part E, limits of file size, core files and processes hold for whatever the command starts.
#[tokio::test]
async fn limits_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(
        folder.path(),
        "bash -c 'ulimit -f; ulimit -c; ulimit -u; cat /proc/self/oom_score_adj'",
    )
    .await;
    let lines: Vec<&str> = output.text.lines().collect();
    assert_eq!((lines[0], lines[1], lines[3]), ("1048576", "0", "1000"), "{}", output.text);
    assert!(
        lines[2].parse::<u64>().is_ok_and(|limit| (257..100_000).contains(&limit)),
        "{}",
        output.text
    );
    // A gigabyte and one byte; a file with a hole takes no room.
    let output = run(folder.path(), "truncate -s 1073741825 big || echo refused").await;
    assert!(output.text.contains("refused"), "{}", output.text);
    assert!(!folder.path().join("big").metadata().is_ok_and(|file| file.len() > 1 << 30));
}

/// design: issue must-show 5, a gigabyte of output neither stalls the command nor costs memory; what is kept is its head,
/// and the cut is told.
#[tokio::test]
async fn a_gigabyte_of_output_is_read_and_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let before = resident_kib();
    let output = run(folder.path(), "yes | head -c 1G; echo done >&2; exit 7").await;
    let grown = resident_kib().saturating_sub(before);
    // Other tests run in this process, too.
    assert!(grown < 512 << 10, "{grown} KiB more");
    assert_eq!((output.exit_code, output.truncated), (Some(7), true));
    assert!(output.text.len() <= 64 << 10, "{}", output.text.len());
    let (head, rest) = output.text.split_once('[').unwrap();
    assert!(head.len() > 60 << 10 && head.lines().all(|line| line == "y"), "{}", head.len());
    assert_eq!(rest, "cut: stdout had 1073741824 bytes, these are the first]\ndone");
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// design: failures I7, both outputs at once stay within the result, and neither is lost.
#[tokio::test]
async fn both_outputs_share_the_room() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(
        folder.path(),
        "head -c 100000 /dev/zero | tr '\\0' o; head -c 100000 /dev/zero | tr '\\0' e >&2",
    )
    .await;
    assert!(output.text.len() <= 64 << 10, "{}", output.text.len());
    let count = |letter: char| output.text.chars().filter(|c| *c == letter).count();
    assert!(count('o') > 30_000 && count('e') > 30_000, "{} {}", count('o'), count('e'));
    assert!(output.text.contains("[cut: stdout had 100000 bytes") && output.text.contains("[cut: stderr had 100000 bytes"));
    assert_eq!(output.exit_code, Some(0));
}

/// design: bytes that are no text show as such, characters that hide show, and a cut is never inside a character.
#[tokio::test]
async fn odd_bytes_are_text_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), r"printf 'a\xff\xfeb\0c\033[31md\n'").await;
    assert_eq!(output.text, "a\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}[31md");
    let output = run(folder.path(), "printf x; for i in $(seq 30000); do printf 好; done").await;
    let head = output.text.lines().next().unwrap();
    assert!(output.truncated && !head.contains('\u{fffd}') && head.ends_with('好'));
}

/// design: issue part E, what the command leaves in the background ends with it, and does not hold the call open.
#[tokio::test]
async fn the_background_ends_with_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let output = run(
        folder.path(),
        "(trap '' TERM HUP; echo $BASHPID > pid; exec sleep 300) & until [ -s pid ]; do :; done; echo ok",
    )
    .await;
    assert_eq!((output.text.as_str(), output.exit_code), ("ok", Some(0)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    gone(process(folder.path(), "pid").await).await;
}

/// design: issue must-show 5, a process that multiplies is ended with all of its children. Its bounds here are its own: each
/// generation has two, and there are seven.
#[tokio::test]
async fn a_fork_bomb_ends_whole() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("bomb"),
        "trap '' TERM\necho $$ >> pids\n[ \"$1\" -gt 0 ] || exec sleep 300\nbash bomb $(($1 - 1)) & bash bomb $(($1 - 1)) & wait\n",
    )
    .unwrap();
    let call = CallHandle::default();
    let running = run_until(folder.path(), "bash bomb 6", &call);
    let everybody = async {
        let pids = || async {
            let pids = std::fs::read_to_string(folder.path().join("pids")).ok()?;
            let pids: Vec<Pid> = pids.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect();
            (pids.len() == 127).then_some(pids)
        };
        let pids = eventually("all generations", pids).await;
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        call.halt.tell(HaltReason::ByTime);
        pids
    };
    let (output, pids) = tokio::join!(running, everybody);
    assert!(words(&output).ends_with("\nexit: killed by signal 9"), "{}", output.text);
    for pid in pids {
        gone(pid).await;
    }
}

/// design: issue must-show 5, time is up: everybody is asked to end and what they say to that is still heard; who does not
/// listen is killed two seconds later.
#[tokio::test]
async fn time_is_up() {
    let folder = tempfile::tempdir().unwrap();
    for (trap, last, end, grace) in [
        ("trap 'echo bye; exit 5' TERM", "bye\n", "", 0..1500),
        ("trap '' TERM", "", "\nexit: killed by signal 9", 1900..6000),
    ] {
        let _ = std::fs::remove_file(folder.path().join("pid"));
        let call = CallHandle::default();
        let command = format!("{trap}; echo begun; echo $$ > pid; sleep 300 & wait; wait");
        let running = async {
            let output = run_until(folder.path(), &command, &call).await;
            (output, Instant::now())
        };
        let told = async {
            process(folder.path(), "pid").await;
            call.halt.tell(HaltReason::ByTime);
            Instant::now()
        };
        let ((output, ended), told) = tokio::join!(running, told);
        let expected = format!("begun\n{last}[stopped: its time was up; what it did until then stays done]{end}");
        assert_eq!(words(&output), expected);
        let took = ended.duration_since(told).as_millis();
        assert!(grace.contains(&took), "{took} ms");
        gone(process(folder.path(), "pid").await).await;
    }
}

/// design: issue part F, a person's stop ends even a command that does not listen within a second, with what it printed.
#[tokio::test]
async fn a_person_stops_it() {
    let folder = tempfile::tempdir().unwrap();
    let call = CallHandle::default();
    let running = async {
        let output = run_until(
            folder.path(),
            "trap '' TERM; echo half; echo $$ > pid; sleep 300 & wait; wait",
            &call,
        )
        .await;
        (output, Instant::now())
    };
    let told = async {
        process(folder.path(), "pid").await;
        call.halt.tell(HaltReason::ByPerson);
        Instant::now()
    };
    let ((output, ended), told) = tokio::join!(running, told);
    assert!(
        ended.duration_since(told) < Duration::from_millis(900),
        "{:?}",
        ended.duration_since(told)
    );
    let expected = "half\n[stopped by a person; what it did until then stays done]\nexit: killed by signal 9";
    assert_eq!(words(&output), expected);
}

/// design: a command that runs holds no thread of those that reads and writes of files share: any number may run at a time.
#[test]
fn running_commands_hold_no_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let waits = |own: &str, other: &str| format!("echo $$ > {own}; until [ -s {other} ]; do sleep 0.05; done; echo met");
    let both = async {
        let (one, other) = (waits("a", "b"), waits("b", "a"));
        tokio::join!(run(folder.path(), &one), run(folder.path(), &other))
    };
    let (one, other) = runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(30), both).await })
        .expect("two commands at a time");
    assert_eq!((one.text.as_str(), other.text.as_str()), ("met", "met"));
}

/// design: issue part E, a call that is dropped takes its grandchildren along.
#[tokio::test]
async fn a_dropped_call_leaves_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let command = "trap '' TERM HUP; bash -c 'echo $$ > grandchild; sleep 300; true' & echo $$ > child; wait";
    let pids = tokio::select! {
        output = run(folder.path(), command) => panic!("it ended: {output:?}"),
        pids = async { (process(folder.path(), "child").await, process(folder.path(), "grandchild").await) } => pids,
    };
    gone(pids.0).await;
    gone(pids.1).await;
}

/// design: what is not covered, a process that leaves the group is neither waited for nor killed, and the result says that it
/// still holds the output.
#[tokio::test]
async fn who_leaves_the_group_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let output = run(
        folder.path(),
        "setsid bash -c 'echo $$ > pid; exec sleep 20' & until [ -s pid ]; do :; done; echo ok",
    )
    .await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(
        output
            .text
            .starts_with("ok\n[a process that left the command's group still holds its stdout]\n"),
        "{}",
        output.text
    );
    let left = process(folder.path(), "pid").await;
    assert!(is_alive(left));
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
}

/// design: interface §2, `run_bash` is there only when it is switched on.
#[tokio::test]
async fn it_is_off_unless_switched_on() {
    let folder = tempfile::tempdir().unwrap();
    let names = |run_bash: bool| {
        let mut boot = boot(Some(folder.path()));
        boot.tools.run_bash = run_bash;
        let specs = countersign_gateway::app::toolbox(&boot, &Reach::default()).unwrap().specs();
        specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>()
    };
    assert_eq!(names(false), ["list_files", "read_file", "write_file"]);
    assert_eq!(names(true), ["list_files", "read_file", "write_file", "run_bash"]);
}
