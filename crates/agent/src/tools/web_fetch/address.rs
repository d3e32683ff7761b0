//! Which addresses belong to the public internet.
//!
//! After the special-purpose registries of IANA (RFC 6890 and its successors). What is not known to be public is not: of IPv6
//! only the global unicast block counts, without the parts that stand for an IPv4 address or for nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of IPv4 that are not the public internet: address and prefix length.
const NOT_PUBLIC_V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),        // this network
    ([10, 0, 0, 0], 8),       // private
    ([100, 64, 0, 0], 10),    // shared by carriers; clouds keep their metadata there, too
    ([127, 0, 0, 0], 8),      // loopback
    ([168, 63, 129, 16], 32), // a cloud's channel to its virtual machines
    ([169, 254, 0, 0], 16),   // link-local, metadata services
    ([172, 16, 0, 0], 12),    // private
    ([192, 0, 0, 0], 24),     // protocol assignments
    ([192, 0, 2, 0], 24),     // documentation
    ([192, 31, 196, 0], 24),  // AS112
    ([192, 52, 193, 0], 24),  // AMT
    ([192, 88, 99, 0], 24),   // 6to4 relays
    ([192, 168, 0, 0], 16),   // private
    ([192, 175, 48, 0], 24),  // AS112
    ([198, 18, 0, 0], 15),    // benchmarks
    ([198, 51, 100, 0], 24),  // documentation
    ([203, 0, 113, 0], 24),   // documentation
    ([224, 0, 0, 0], 4),      // multicast
    ([240, 0, 0, 0], 4),      // reserved, broadcast
];

/// Global unicast, and the blocks inside it that are not the public internet.
const GLOBAL_V6: ([u16; 8], u32) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
const NOT_PUBLIC_V6: &[([u16; 8], u32)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),         // protocol assignments: Teredo, ORCHID, benchmarks
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),     // documentation
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),         // 6to4: an IPv4 address inside
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), // AS112
    ([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16),         // the former 6bone
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),         // documentation
];

/// Is this an address of the public internet?
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let within = |(block, length): &([u8; 4], u32)| {
        let rest = 32 - length;
        bits >> rest == Ipv4Addr::from(*block).to_bits() >> rest
    };
    !NOT_PUBLIC_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let within = |(block, length): &([u16; 8], u32)| {
        let rest = 128 - length;
        bits >> rest == Ipv6Addr::from(*block).to_bits() >> rest
    };
    // ISATAP: whatever the prefix, the interface is an IPv4 address.
    let isatap = matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _]);
    within(&GLOBAL_V6) && !isatap && !NOT_PUBLIC_V6.iter().any(within)
}

#[cfg(test)]
mod tests {
    use super::is_public;

    /// design: failures §3.5, the edges of the blocks: what lies beside them is the public internet.
    #[test]
    fn the_public_internet_is_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7:ffff::1",
            "2001:db9::1",
            "2003::1",
            "2606:4700:4700::1111",
            "3ffd::1",
            "3fff:1000::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.255.255.255",
            "10.255.255.255",
            "100.127.255.255",
            "127.255.255.255",
            "172.31.255.255",
            "198.19.255.255",
            "224.0.0.0",
            "1fff:ffff::1",
            "2001:1ff:ffff::1",
            "2002:ffff::1",
            "3fff:fff:ffff::1",
            "4000::",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
