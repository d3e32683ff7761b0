//! Webhook load generator. One thread, raw sockets over mio, pre-signed distinct events, one request in flight per connection.
//! Closed loop by default; --rate N switches to an open loop whose latencies run from the time a request was due.
use mio::{Events, Interest, Poll, Token, net::TcpStream};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

struct Args {
    host: String,
    path: String,
    kind: String,
    chatter: bool,
    connections: usize,
    duration: f64,
    rate: f64,
    dup: f64,
    invalid: f64,
    max: usize,
    name: String,
    warm: usize,
}

fn args() -> Args {
    let mut a = Args {
        host: "127.0.0.1:3000".into(),
        path: "/".into(),
        kind: "slack".into(),
        chatter: false,
        connections: 16,
        duration: 5.0,
        rate: 0.0,
        dup: 0.0,
        invalid: 0.0,
        max: 400_000,
        name: String::new(),
        warm: 0,
    };
    let mut it = std::env::args().skip(1);
    while let Some(k) = it.next() {
        let mut v = || it.next().unwrap_or_else(|| panic!("{k} needs a value"));
        match k.as_str() {
            "--target" => {
                let u = v();
                let u = u.strip_prefix("http://").expect("http:// only").to_string();
                let (h, p) = u.split_once('/').unwrap_or((&u, ""));
                a.host = h.into();
                a.path = format!("/{p}");
            }
            "--kind" => a.kind = v(),
            "--chatter" => a.chatter = v() == "1",
            "--connections" => a.connections = v().parse().unwrap(),
            "--duration" => a.duration = v().parse().unwrap(),
            "--rate" => a.rate = v().parse().unwrap(),
            "--duplicates" => a.dup = v().parse().unwrap(),
            "--invalid" => a.invalid = v().parse().unwrap(),
            "--max-requests" => a.max = v().parse().unwrap(),
            "--warm" => a.warm = v().parse().unwrap(),
            "--name" => a.name = v(),
            _ => panic!("unknown {k}"),
        }
    }
    let ip = a.host.rsplit_once(':').unwrap().0;
    assert!(
        ip.starts_with("127.") || ip == "localhost" || ip == "[::1]",
        "loopback targets only"
    );
    assert!(a.duration <= 120.0, "bounded runs only");
    a
}

struct Conn {
    s: TcpStream,
    out: (usize, usize), // index, bytes written
    buf: Vec<u8>,
    t0: Instant,
    busy: bool,
    idx: usize,
}

/// (status, total length) once a whole response is in `b`.
fn parse(b: &[u8]) -> Option<(u16, usize, bool)> {
    let end = b.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&b[..end]).ok()?;
    let status: u16 = head.get(9..12)?.parse().ok()?;
    let (mut cl, mut chunked, mut close) = (None, false, false);
    for l in head.split("\r\n").skip(1) {
        if let Some((k, v)) = l.split_once(':') {
            if k.eq_ignore_ascii_case("content-length") {
                cl = v.trim().parse::<usize>().ok();
            } else if k.eq_ignore_ascii_case("transfer-encoding") {
                chunked = v.to_ascii_lowercase().contains("chunked");
            } else if k.eq_ignore_ascii_case("connection") {
                close = v.trim().eq_ignore_ascii_case("close");
            }
        }
    }
    if chunked {
        let mut p = end;
        loop {
            let e = b[p..].windows(2).position(|w| w == b"\r\n")?;
            let n = usize::from_str_radix(std::str::from_utf8(&b[p..p + e]).ok()?.split(';').next()?.trim(), 16).ok()?;
            p += e + 2 + n + 2;
            if b.len() < p {
                return None;
            }
            if n == 0 {
                return Some((status, p, close));
            }
        }
    }
    let total = end + if status == 204 || status == 304 { 0 } else { cl.unwrap_or(0) };
    (b.len() >= total).then_some((status, total, close))
}

fn cpu() -> f64 {
    unsafe {
        let mut r: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut r);
        (r.ru_utime.tv_sec + r.ru_stime.tv_sec) as f64 + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) as f64 / 1e6
    }
}

fn main() {
    let a = args();
    let addr = a.host.replace("localhost", "127.0.0.1").parse().unwrap();
    let n = if a.rate > 0.0 {
        ((a.rate * a.duration) as usize + 1).min(a.max)
    } else {
        a.max
    } + a.warm;
    let run = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    let (mut arena, mut off, mut bad) = (Vec::with_capacity(n * 1900), Vec::with_capacity(n + 1), Vec::with_capacity(n));
    let mut x = run | 1;
    off.push(0usize);
    let wanted = countersign_bench::Wanted {
        kind: &a.kind,
        host: &a.host,
        path: &a.path,
        chatter: a.chatter,
        run,
    };
    let mut ndup = 0usize;
    for i in 0..n {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let r = (x >> 11) as f64 / (1u64 << 53) as f64 * 100.0;
        let isbad = r < a.invalid;
        let isdup = !isbad && r < a.invalid + a.dup && i > 64;
        ndup += isdup as usize;
        let id = if isdup { i as u64 - 1 - x % 64 } else { i as u64 };
        arena.extend_from_slice(&countersign_bench::request(&wanted, id, isbad, isdup));
        off.push(arena.len());
        bad.push(isbad);
    }
    let mut poll = Poll::new().unwrap();
    let mut ev = Events::with_capacity(1024);
    let mut conns: Vec<Conn> = Vec::new();
    let open = |i: usize, poll: &Poll| -> Conn {
        let s = std::net::TcpStream::connect::<std::net::SocketAddr>(addr).expect("connect");
        s.set_nodelay(true).unwrap();
        s.set_nonblocking(true).unwrap();
        let mut s = TcpStream::from_std(s);
        poll.registry()
            .register(&mut s, Token(i), Interest::READABLE | Interest::WRITABLE)
            .unwrap();
        Conn {
            s,
            out: (0, 0),
            buf: Vec::with_capacity(4096),
            t0: Instant::now(),
            busy: false,
            idx: 0,
        }
    };
    for i in 0..a.connections {
        conns.push(open(i, &poll));
    }
    let mut idle: Vec<usize> = (0..a.connections).collect();
    let (mut next, mut done, mut errs, mut reconn) = (0usize, 0usize, 0usize, 0usize);
    let mut lat: Vec<u32> = Vec::with_capacity(n);
    let mut by = std::collections::BTreeMap::<(bool, u16), usize>::new();
    let mut start = Instant::now();
    let mut c0 = cpu();
    let mut warming = a.warm > 0;
    let mut tmp = [0u8; 16384];
    let mut due0 = start;
    let mut stop = start + Duration::from_secs_f64(a.duration);
    let gone = |c: &mut Conn, poll: &Poll, i: usize| {
        *c = open(i, poll);
    };
    loop {
        let t = Instant::now();
        if warming && done >= a.warm && idle.len() == conns.len() {
            warming = false;
            lat.clear();
            by.clear();
            done = 0;
            errs = 0;
            start = Instant::now();
            c0 = cpu();
            due0 = start;
            stop = start + Duration::from_secs_f64(a.duration);
        }
        let limit = if warming { a.warm } else { n };
        let finished = !warming && t >= stop;
        let mut wait = None;
        // start what may start
        while !finished && next < limit && !idle.is_empty() {
            let mut t0 = Instant::now();
            if a.rate > 0.0 && !warming {
                let due = due0 + Duration::from_secs_f64((next - a.warm) as f64 / a.rate);
                if due > t0 {
                    wait = Some(due - t0);
                    break;
                }
                t0 = due;
            }
            let ci = idle.pop().unwrap();
            let c = &mut conns[ci];
            c.t0 = t0;
            c.busy = true;
            c.idx = next;
            c.buf.clear();
            next += 1;
            let d = &arena[off[c.idx]..off[c.idx + 1]];
            match c.s.write(d) {
                Ok(w) => c.out = (c.idx, w),
                Err(e) if e.kind() == ErrorKind::WouldBlock => c.out = (c.idx, 0),
                Err(_) => {
                    reconn += 1;
                    *c = open(ci, &poll);
                    let w = c.s.write(d).unwrap_or(0);
                    c.out = (next - 1, w);
                    c.idx = next - 1;
                    c.busy = true;
                    c.t0 = t0;
                }
            }
        }
        if (finished || (!warming && next >= n)) && idle.len() == conns.len() {
            break;
        }
        if t > stop + Duration::from_secs(15) {
            break;
        }
        // open loop: never sleep past the next due time (spin under 1 ms: poll timeouts are in whole ms)
        let to = match wait {
            Some(w) if w < Duration::from_millis(1) => Duration::ZERO,
            Some(w) => Duration::from_millis(w.as_millis().min(50) as u64 - if w.as_millis() > 1 { 1 } else { 0 }),
            None => Duration::from_millis(100),
        };
        poll.poll(&mut ev, Some(to)).ok();
        for e in ev.iter() {
            let i = e.token().0;
            let c = &mut conns[i];
            if !c.busy {
                if e.is_read_closed() {
                    reconn += 1;
                    gone(c, &poll, i);
                }
                continue;
            }
            let len = off[c.idx + 1] - off[c.idx];
            if e.is_writable() && c.out.1 < len {
                if let Ok(w) = c.s.write(&arena[off[c.idx] + c.out.1..off[c.idx + 1]]) {
                    c.out.1 += w
                }
            }
            if e.is_readable() {
                let mut closed = false;
                loop {
                    match c.s.read(&mut tmp) {
                        Ok(0) => {
                            closed = true;
                            break;
                        }
                        Ok(k) => {
                            c.buf.extend_from_slice(&tmp[..k]);
                            if k < tmp.len() {
                                break;
                            }
                        }
                        Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                        Err(_) => {
                            closed = true;
                            break;
                        }
                    }
                }
                if let Some((st, _, close)) = parse(&c.buf) {
                    lat.push(c.t0.elapsed().as_micros().min(u32::MAX as u128) as u32);
                    *by.entry((bad[c.idx], st)).or_default() += 1;
                    done += 1;
                    c.busy = false;
                    idle.push(i);
                    if close || closed {
                        reconn += 1;
                        gone(c, &poll, i);
                    }
                } else if closed {
                    errs += 1;
                    done += 1;
                    c.busy = false;
                    idle.push(i);
                    reconn += 1;
                    gone(c, &poll, i);
                }
            }
        }
    }
    let el = start.elapsed().as_secs_f64();
    let used = cpu() - c0;
    lat.sort_unstable();
    let p = |q: f64| {
        if lat.is_empty() {
            0
        } else {
            lat[((lat.len() as f64 * q) as usize).min(lat.len() - 1)]
        }
    };
    let cnt = |f: &dyn Fn(bool, u16) -> bool| by.iter().filter(|(k, _)| f(k.0, k.1)).map(|(_, v)| *v).sum::<usize>();
    let ok = cnt(&|b, s| !b && (200..300).contains(&s));
    let non2 = cnt(&|b, s| !b && !(200..300).contains(&s));
    let rej = cnt(&|b, s| b && !(200..300).contains(&s));
    let acc = cnt(&|b, s| b && (200..300).contains(&s));
    let left = conns.iter().filter(|c| c.busy).count();
    println!(
        "{{\"name\":\"{}\",\"kind\":\"{}\",\"connections\":{},\"rate_asked\":{},\"seconds\":{:.3},\"requests\":{},\"rps\":{:.1},\"p50_us\":{},\"p90_us\":{},\"p99_us\":{},\"p999_us\":{},\"max_us\":{},\"valid_2xx\":{},\"valid_non2xx\":{},\"invalid_rejected\":{},\"invalid_accepted\":{},\"duplicates_made\":{},\"errors\":{},\"unanswered\":{},\"reconnects\":{},\"loadgen_cpu_pct\":{:.0},\"mean_request_bytes\":{}}}",
        a.name,
        a.kind,
        a.connections,
        a.rate,
        el,
        done,
        done as f64 / el,
        p(0.5),
        p(0.9),
        p(0.99),
        p(0.999),
        lat.last().copied().unwrap_or(0),
        ok,
        non2,
        rej,
        acc,
        ndup,
        errs,
        left,
        reconn,
        used / el * 100.0,
        arena.len() / n.max(1)
    );
}
