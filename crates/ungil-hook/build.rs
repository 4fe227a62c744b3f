//! Has the hook mean its own functions where it names them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The stub defines functions of the same names and is searched before. What this library tells
    // it to call would be the stub's own again. zig has no -Bsymbolic-functions, which would do, too.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
