"""A guest of 512 bytes that proves it ran: from real mode to 64 bits, a sum, and an exit code that only it produces."""

EXIT_CODE = 85
"""What QEMU exits with when the guest wrote 0x2a to its isa-debug-exit device: 0x2a * 2 + 1."""

_PROGRAM = (
    # The BIOS loads this at 0x7c00 in real mode. Interrupts stay off; ds = es = ss = 0.
    "fa"  # 7c00  cli
    "fc"  # 7c01  cld
    "66 31 c0"  # 7c02  xor eax, eax
    "8e d8"  # 7c05  mov ds, ax
    "8e c0"  # 7c07  mov es, ax
    "8e d0"  # 7c09  mov ss, ax
    "bc 00 7c"  # 7c0b  mov sp, 0x7c00
    # Page tables at 0x1000: the first 2 MiB mapped onto themselves by one large page.
    "bf 00 10"  # 7c0e  mov di, 0x1000
    "b9 00 0c"  # 7c11  mov cx, 0xc00
    "66 f3 ab"  # 7c14  rep stosd
    "c7 06 00 10 03 20"  # 7c17  mov word [0x1000], 0x2003
    "c7 06 00 20 03 30"  # 7c1d  mov word [0x2000], 0x3003
    "c7 06 00 30 83 00"  # 7c23  mov word [0x3000], 0x83
    # Physical address extension, page table base, long mode enable, then protection and paging at once.
    "0f 20 e0"  # 7c29  mov eax, cr4
    "0c 20"  # 7c2c  or al, 0x20
    "0f 22 e0"  # 7c2e  mov cr4, eax
    "66 b8 00 10 00 00"  # 7c31  mov eax, 0x1000
    "0f 22 d8"  # 7c37  mov cr3, eax
    "66 b9 80 00 00 c0"  # 7c3a  mov ecx, 0xc0000080
    "0f 32"  # 7c40  rdmsr
    "80 cc 01"  # 7c42  or ah, 1
    "0f 30"  # 7c45  wrmsr
    "0f 20 c0"  # 7c47  mov eax, cr0
    "66 0d 01 00 00 80"  # 7c4a  or eax, 0x80000001
    "0f 01 16 70 7c"  # 7c50  lgdt [0x7c70]
    "0f 22 c0"  # 7c55  mov cr0, eax
    "ea 76 7c 08 00"  # 7c58  jmp 0x08:0x7c76
    "90 90 90"  # 7c5d  padding
    "00 00 00 00 00 00 00 00"  # 7c60  descriptor table: the empty entry
    "00 00 00 00 00 9a 20 00"  # 7c68  and 64-bit code, selector 0x08
    "0f 00 60 7c 00 00"  # 7c70  its limit and address
    # 64 bits: the sum of 1 to 100000 needs more than 32.
    "31 c0"  # 7c76  xor eax, eax
    "b9 a0 86 01 00"  # 7c78  mov ecx, 100000
    "48 01 c8"  # 7c7d  add rax, rcx
    "e2 fb"  # 7c80  loop 0x7c7d
    "48 ba 50 b5 06 2a 01 00 00 00"  # 7c82  mov rdx, 5000050000
    "48 39 d0"  # 7c8c  cmp rax, rdx
    "b0 2a"  # 7c8f  mov al, 0x2a
    "74 02"  # 7c91  je 0x7c95
    "ff c0"  # 7c93  inc eax
    "e6 f4"  # 7c95  out 0xf4, al
    "f4"  # 7c97  hlt
    "eb fd"  # 7c98  jmp 0x7c97
)


def boot_sector() -> bytes:
    """Return the guest as the first sector of a disk that a BIOS boots from."""
    return bytes.fromhex(_PROGRAM).ljust(510, b"\0") + b"\x55\xaa"
