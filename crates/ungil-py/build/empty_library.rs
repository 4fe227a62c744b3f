//! A library of 32 bits that does nothing: what a loader of 32 bits finds where one of 64 bits finds
//! the stub, so that it has nothing to say. Written byte for byte, because not every compiler knows
//! both.

/// `ET_DYN`, `EM_386`, `EV_CURRENT`.
const KIND: [u16; 2] = [3, 3];
const VERSION: u32 = 1;
/// Sizes that the format gives: its header, a segment's, and a symbol.
const HEADER: u32 = 52;
const SEGMENT: u32 = 32;
const SYMBOL: u32 = 16;
const SEGMENT_COUNT: u32 = 3;
/// Where its parts are, in the file as in memory.
const DYNAMIC_AT: u32 = HEADER + SEGMENT * SEGMENT_COUNT;
const DYNAMIC_SIZE: u32 = 6 * 8;
const SYMBOLS_AT: u32 = DYNAMIC_AT + DYNAMIC_SIZE;
const HASH_AT: u32 = SYMBOLS_AT + SYMBOL;
const HASH_SIZE: u32 = 4 * 4;
const NAMES_AT: u32 = HASH_AT + HASH_SIZE;
/// The empty name.
const NAMES_SIZE: u32 = 1;
const SIZE: u32 = NAMES_AT + NAMES_SIZE;
/// `PF_R` and `PF_W`. Older loaders write addresses into the dynamic section.
const MODE: u32 = 4 | 2;
const PAGE: u32 = 0x1000;

/// The library, for i386.
pub fn for_i386() -> Vec<u8> {
    // The magic number, 32 bits, the lower byte first, version 1.
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(KIND.into_iter().flat_map(u16::to_le_bytes));
    // No beginning, no sections, no flags.
    words(&mut file, &[VERSION, 0, HEADER, 0, 0]);
    for half in [HEADER, SEGMENT, SEGMENT_COUNT, 0, 0, 0] {
        file.extend(u16::try_from(half).expect("these are small").to_le_bytes());
    }
    // PT_LOAD, of the whole file; PT_DYNAMIC; PT_GNU_STACK, without which stacks were executable.
    words(&mut file, &[1, 0, 0, 0, SIZE, SIZE, MODE, PAGE]);
    words(&mut file, &[2, DYNAMIC_AT, DYNAMIC_AT, DYNAMIC_AT, DYNAMIC_SIZE, DYNAMIC_SIZE, MODE, 4]);
    words(&mut file, &[0x6474_e551, 0, 0, 0, 0, 0, MODE, 16]);
    // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL.
    words(&mut file, &[4, HASH_AT, 5, NAMES_AT, 6, SYMBOLS_AT, 10, NAMES_SIZE, 11, SYMBOL, 0, 0]);
    // The symbol that is none.
    words(&mut file, &[0; 4]);
    // One bucket, one symbol, and the bucket is empty.
    words(&mut file, &[1, 1, 0, 0]);
    file.push(0);
    assert_eq!(file.len(), SIZE as usize);
    file
}

fn words(file: &mut Vec<u8>, words: &[u32]) {
    file.extend(words.iter().flat_map(|it| it.to_le_bytes()));
}
