//! The guest in Rust: what it does to the first text of a request, the key
//! `task` of its configuration says.

mod hookhost;
mod tasks;

use hookhost::{config, leaf, reject, BEFORE_MODEL, FAIL};

static mut TASK: Option<fn(&str) -> i64> = None;

#[no_mangle]
pub extern "C" fn hookhost_abi_1() -> i64 {
    1 << BEFORE_MODEL
}

#[no_mangle]
pub extern "C" fn hookhost_configure() -> i32 {
    let task = match config("task").as_deref() {
        Some("verdict") => tasks::verdict,
        Some("json") => tasks::json,
        Some("regexp") => {
            tasks::compile();
            tasks::regexp
        }
        Some("mask") => tasks::mask,
        _ => {
            reject("task", "no such task");
            return 1;
        }
    };
    unsafe { TASK = Some(task) };
    0
}

#[no_mangle]
pub extern "C" fn hookhost_call(_hook: i32) -> i64 {
    match (unsafe { TASK }, leaf(0)) {
        (Some(task), Some(text)) => task(&text),
        _ => FAIL,
    }
}
