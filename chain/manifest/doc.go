// Package manifest reads hooks.toml and plans.toml, the two files by which the
// host is run, and says what they mean before anything runs.
//
// Reading is strict: an unknown key, an unknown value or a number out of range
// is an error at its line and column, and all errors of a file are reported at
// once. Durations are written with their unit ("50ms", "2s", "1m30s"), sizes
// too ("512KiB", "32MiB", "1GiB").
package manifest
