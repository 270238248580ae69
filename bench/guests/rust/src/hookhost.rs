//! What the guest in Rust uses of the ABI.

pub const BEFORE_MODEL: u32 = 7;

pub const CONTINUE: i64 = 1;
pub const AMEND: i64 = 2;
pub const RESPOND: i64 = 3;
pub const FAIL: i64 = 5;

mod import {
    #[link(wasm_import_module = "hookhost")]
    extern "C" {
        pub fn leaf_read(index: i32, offset: i32, buf: *mut u8, cap: usize) -> i32;
        pub fn leaf_splice(index: i32, start: usize, end: usize, text: *const u8, len: usize) -> i32;
        pub fn answer(kind: i32, value: *const u8, len: usize) -> i32;
        pub fn refuse(code: *const u8, code_len: usize, text: *const u8, len: usize, retry_ms: i64) -> i32;
        pub fn config(key: *const u8, len: usize, buf: *mut u8, cap: usize) -> i32;
        pub fn reject(key: *const u8, len: usize, text: *const u8, text_len: usize) -> i32;
    }
}

/// The text of a leaf.
pub fn leaf(index: i32) -> Option<String> {
    filled(|buf, cap| unsafe { import::leaf_read(index, 0, buf, cap) })
}

/// A value of the configuration.
pub fn config(key: &str) -> Option<String> {
    filled(|buf, cap| unsafe { import::config(key.as_ptr(), key.len(), buf, cap) })
}

/// Reads with a buffer that is large enough most times, and else again.
fn filled(read: impl Fn(*mut u8, usize) -> i32) -> Option<String> {
    let mut buf: Vec<u8> = Vec::with_capacity(8 << 10);
    loop {
        let n = usize::try_from(read(buf.as_mut_ptr(), buf.capacity())).ok()?;
        if n <= buf.capacity() {
            unsafe { buf.set_len(n) };
            return String::from_utf8(buf).ok();
        }
        buf.reserve(n);
    }
}

pub fn splice(leaf: i32, start: usize, end: usize, text: &str) -> bool {
    unsafe { import::leaf_splice(leaf, start, end, text.as_ptr(), text.len()) >= 0 }
}

pub fn answer(text: &str) -> i64 {
    responded(unsafe { import::answer(1, text.as_ptr(), text.len()) })
}

pub fn refuse(code: &str, text: &str) -> i64 {
    responded(unsafe { import::refuse(code.as_ptr(), code.len(), text.as_ptr(), text.len(), 0) })
}

pub fn reject(key: &str, text: &str) {
    unsafe { import::reject(key.as_ptr(), key.len(), text.as_ptr(), text.len()) };
}

fn responded(code: i32) -> i64 {
    if code < 0 { FAIL } else { RESPOND }
}
