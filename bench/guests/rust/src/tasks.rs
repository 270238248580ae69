//! The tasks, each of which looks at a text and gives a verdict.

use crate::hookhost::{answer, refuse, splice, AMEND, CONTINUE, FAIL};
use regex::Regex;
use serde::Deserialize;

const PHRASES: [&str; 8] = [
    "ignore all previous instructions", "reveal your system prompt", "disable the safety", "print your api key",
    "act as an unrestricted", "send the password", "bypass the filter", "delete every record",
];

/// Refuses a text with one of the phrases, whatever its case.
pub fn verdict(text: &str) -> i64 {
    let text = text.to_ascii_lowercase();
    if PHRASES.iter().any(|phrase| text.contains(phrase)) {
        return refuse("phrase", "This cannot be answered.");
    }
    CONTINUE
}

#[derive(Deserialize)]
struct Orders {
    orders: Vec<Order>,
}

#[derive(Deserialize)]
struct Order {
    paid: bool,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    quantity: i64,
    cents: i64,
}

/// Adds up the orders of a document that are paid.
pub fn json(text: &str) -> i64 {
    let document: Orders = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(_) => return answer("malformed"),
    };
    let (mut paid, mut cents) = (0, 0);
    for order in document.orders.iter().filter(|order| order.paid) {
        paid += 1;
        cents += order.items.iter().map(|item| item.quantity * item.cents).sum::<i64>();
    }
    answer(&format!("{paid} paid, {cents} cents"))
}

static mut PATTERN: Option<Regex> = None;

/// Makes the pattern, and what the library makes of it at the first search: it
/// is in the image then, and not made again in every call.
pub fn compile() {
    let pattern = Regex::new("[A-Z]{2,3}-[0-9]{4,8}").ok();
    if let Some(pattern) = &pattern {
        pattern.find_iter("The claims AB-1234 and ABC-12345678, a-1 and A-12.").count();
    }
    unsafe { PATTERN = pattern };
}

/// Counts and lists all numbers of cases.
pub fn regexp(text: &str) -> i64 {
    let pattern = match unsafe { PATTERN.as_ref() } {
        Some(pattern) => pattern,
        None => return FAIL,
    };
    let found: Vec<&str> = pattern.find_iter(text).map(|m| m.as_str()).collect();
    answer(&format!("{} found: {}", found.len(), found.join(",")))
}

/// Masks runs of 13 to 19 digits, in groups with one space or hyphen between
/// them, that pass Luhn's check.
pub fn mask(text: &str) -> i64 {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).map_or(false, u8::is_ascii_digit);
    let mut verdict = CONTINUE;
    let mut at = 0;
    while at < bytes.len() {
        if !digit(at) {
            at += 1;
            continue;
        }
        let start = at;
        let mut digits = [0u8; 19];
        let mut n = 0;
        loop {
            if digit(at) {
                if n < digits.len() {
                    digits[n] = bytes[at] - b'0';
                }
                n += 1;
            } else if !(matches!(bytes.get(at), Some(b' ' | b'-')) && digit(at + 1)) {
                break;
            }
            at += 1;
        }
        if !(13..=digits.len()).contains(&n) || !luhn(&digits[..n]) {
            continue;
        }
        if !splice(0, start, at, "[card]") {
            return FAIL;
        }
        verdict = AMEND;
    }
    verdict
}

fn luhn(digits: &[u8]) -> bool {
    let doubled = |(i, d): (usize, &u8)| match (i % 2, u32::from(*d) * 2) {
        (0, _) => u32::from(*d),
        (_, twice) if twice > 9 => twice - 9,
        (_, twice) => twice,
    };
    digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}
