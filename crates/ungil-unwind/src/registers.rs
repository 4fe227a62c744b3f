//! The registers that lead from a frame to its caller.

use framehop::UnwindRegsNative;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The instruction.
    pub ip: u64,
    /// The top of the stack.
    pub sp: u64,
    /// The frame pointer, in functions that have one; 0 if it is not known.
    pub fp: u64,
    /// Where the function returns to, as far as a register has it (aarch64); 0 if that is unknown.
    #[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "it is on the stack"))]
    pub lr: u64,
    /// What a function gives back as it got it. Some keep the way to their caller in one of them.
    pub saved: [u64; SAVED],
}

/// Registers that a function gives back as it got them, without the frame pointer: rbx and r12 to r15.
#[cfg(target_arch = "x86_64")]
const SAVED: usize = 5;
/// Registers that a function gives back as it got them, without the frame pointer: x19 to x28.
#[cfg(target_arch = "aarch64")]
const SAVED: usize = 10;

impl Registers {
    /// Where only the instruction and the stack are known.
    pub fn without_others(ip: u64, sp: u64) -> Self {
        Self { ip, sp, fp: 0, lr: 0, saved: [0; SAVED] }
    }

    /// As the unwinder takes them.
    #[cfg(target_arch = "x86_64")]
    pub fn unwinding(self) -> UnwindRegsNative {
        UnwindRegsNative::new(self.ip, self.sp, self.fp)
    }

    /// As the unwinder takes them.
    #[cfg(target_arch = "aarch64")]
    pub fn unwinding(self) -> UnwindRegsNative {
        // Where a process has no more than 39 bits of addresses, the upper ones may be a signature.
        let mask = framehop::aarch64::PtrAuthMask::new_24_40();
        UnwindRegsNative::new_with_ptr_auth_mask(mask, self.lr, self.sp, self.fp)
    }
}

#[cfg(target_arch = "x86_64")]
impl From<libc::user_regs_struct> for Registers {
    fn from(it: libc::user_regs_struct) -> Self {
        let saved = [it.rbx, it.r12, it.r13, it.r14, it.r15];
        Self { ip: it.rip, sp: it.rsp, fp: it.rbp, lr: 0, saved }
    }
}

#[cfg(target_arch = "aarch64")]
impl From<libc::user_regs_struct> for Registers {
    fn from(it: libc::user_regs_struct) -> Self {
        let saved = std::array::from_fn(|index| it.regs[19 + index]);
        Self { ip: it.pc, sp: it.sp, fp: it.regs[29], lr: it.regs[30], saved }
    }
}
