"""The text of a kernel in PTX, as instructions of the machine.

Immediate numbers, special registers, parameters and addresses of shared arrays become registers that are set before a
kernel starts, so that an instruction has registers alone.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.gpu.emulator.operations import Op

OP, WIDTH, TO, X, Y, Z, GUARD, ALSO = range(8)
"""Columns of `Program.code`: the operation, bits of its numbers, registers, and 1 + the register that guards it, with a
minus if that must be 0. `ALSO` is the second result of a shuffle, the target of a branch or the offset of an address. A
shuffle has 32 bits, and in column `WIDTH` the register that says how far it may reach."""
SPECIAL = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid", "%dynamic_smem_size"}
"""Registers that a launch sets."""
REGISTER = re.compile(r"%(?:p|r|rd|rs|f|fd)\d+(?:_\d+)?|%temp_\d+")
GLOBAL, SHARED = 0, 1
"""Spaces of memory, in column `Z` of a load, `TO` of a store, `Z` of an atomic operation."""

STATEMENT = re.compile(r"(?:(@!?%\w+)\s+)?([a-z][\w.]*)\s*(.*)", re.DOTALL)
SHARED_ARRAY = re.compile(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d*)\]")
ADDRESS = re.compile(r"\[([%\w]+)(?:\+(-?\d+))?\]")
PARAMETER = re.compile(r"_param_(\d+)$")
HALVES = re.compile(r"\{(%\w+), (%\w+)\}")

SIMPLE = {"mov": "MOV", "cvta": "MOV", "add": "ADD", "sub": "SUB", "and": "AND", "or": "OR", "xor": "XOR", "shl": "SHL"}
SIMPLE |= {"selp": "SELP", "neg": "NEG", "not": "NOT"}
SIGNED = {"div": "DIV", "rem": "REM", "shr": "SHR", "min": "MIN", "max": "MAX", "abs": "ABS"}
REAL = {"add", "sub", "mul", "div", "fma", "rcp", "sqrt", "abs", "neg", "min", "max"}
MANY = {
    "bar.sync": Op.BARRIER,
    "bar.red.and.pred": Op.BARRIER_AND,
    "bar.red.or.pred": Op.BARRIER_OR,
    "bar.red.popc.u32": Op.BARRIER_COUNT,
    "bar.warp.sync": Op.WARP_BARRIER,
    "shfl.sync.bfly.b32": Op.SHUFFLE_XOR,
    "shfl.sync.idx.b32": Op.SHUFFLE_INDEX,
    "vote.sync.any.pred": Op.VOTE_ANY,
}


COLUMNS: dict[Op, tuple[tuple[int, ...], tuple[int, ...]]] = {
    Op.LOAD: ((TO,), (X,)),
    Op.STORE: ((), (X, Y)),
    Op.ATOMIC_ADD: ((TO,), (X, Y)),
    Op.BRANCH: ((), ()),
    Op.RETURN: ((), ()),
    Op.BARRIER: ((), ()),
    Op.BARRIER_AND: ((TO,), (X,)),
    Op.BARRIER_OR: ((TO,), (X,)),
    Op.BARRIER_COUNT: ((TO,), (X,)),
    Op.WARP_BARRIER: ((), (Z,)),
    Op.VOTE_ANY: ((TO,), (X, Z)),
    Op.SHUFFLE_XOR: ((TO, ALSO), (X, Y, Z, WIDTH)),
    Op.SHUFFLE_INDEX: ((TO, ALSO), (X, Y, Z, WIDTH)),
}
"""Columns with registers that are written and read, of operations that differ from those on one thread's registers."""


class UnknownInstructionError(Exception):
    """An instruction that the emulator does not know."""


class SharedArray(NamedTuple):
    """An array of shared memory; of size 0 if its size is given at the launch."""

    name: str
    align: int
    size: int


@dataclass
class Program:
    """A kernel: its instructions, and what registers hold at its start."""

    text: list[str] = field(default_factory=list)
    """The instructions as they were written."""
    code: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 8), np.int64))
    registers: dict[str, int] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    """What some registers hold from the start."""
    parameters: dict[int, int] = field(default_factory=dict)
    """The register of each parameter that is used."""
    shared: list[SharedArray] = field(default_factory=list)

    def register(self, name: str) -> int:
        """The number of a register."""
        if name.startswith("%") and name not in SPECIAL and not REGISTER.fullmatch(name):
            raise UnknownInstructionError(f"register {name!r}")
        return self.registers.setdefault(name, len(self.registers))

    def constant(self, value: int) -> int:
        """A register that holds a number from the start."""
        found = self.register(f"={value}")
        self.constants[found] = value
        return found

    def shortest_shared(self) -> int:
        """Bytes of the shortest number that the kernel reads or writes in shared memory."""
        spaces = {Op.LOAD: Z, Op.STORE: TO, Op.ATOMIC_ADD: Z}
        found = [self.code[(self.code[:, OP] == op) & (self.code[:, at] == SHARED), WIDTH] for op, at in spaces.items()]
        return int(min((widths.min() for widths in found if widths.size), default=8)) // 8

    def operand(self, word: str, width: int) -> int:
        """The register of an operand: a register, a number, or a shared array."""
        if word.startswith("%") or any(array.name == word for array in self.shared):
            return self.register(word)
        if word.startswith(("0d", "0f")):
            return self.constant(int(word[2:], 16))
        if not re.fullmatch(r"-?\d+", word):
            raise UnknownInstructionError(f"operand {word!r}")
        return self.constant(int(word) & ((1 << width) - 1))


def width_of(kind: str) -> int:
    """Bits of a type such as "u32"."""
    return 1 if kind == "pred" else int(kind[1:])


def parse(ptx: str) -> Program:
    """The one kernel of a PTX file."""
    ptx = re.sub(r"//[^\n]*", "", ptx)
    program = Program()
    program.shared = [SharedArray(n, int(a), int(size or 0)) for a, n, size in SHARED_ARRAY.findall(ptx)]
    labels: dict[str, int] = {}
    rows: list[list[int]] = []
    branches: list[tuple[int, str]] = []
    for words in _statements(ptx[ptx.index("{", ptx.index(".entry")) :]):
        if words.endswith(":"):
            labels[words[:-1]] = len(rows)
        elif words and not words.startswith("."):
            for row in _instructions(program, words):
                if row[OP] == Op.BRANCH:
                    branches.append((len(rows), words.split()[-1]))
                rows.append(row)
                program.text.append(words)
    for at, label in branches:
        rows[at][ALSO] = labels[label]
    program.code = np.array(rows, dtype=np.int64)
    _share_places(program)
    return program


def _share_places(program: Program) -> None:
    """Let registers that live within one stretch of code, without a branch or a label, take the places of dead ones.

    A compiler uses thousands of registers, most of them for a few instructions; the places of all of them would not fit
    a CPU's cache.
    """
    code = program.code
    starts = np.zeros(len(code) + 1, dtype=np.int64)
    jumps = np.flatnonzero((code[:, OP] == Op.BRANCH) | (code[:, OP] == Op.RETURN))
    starts[jumps + 1] = 1
    starts[code[code[:, OP] == Op.BRANCH, ALSO]] = 1
    stretch, kept = np.cumsum(starts), {*program.constants, *program.parameters.values()}
    kept |= {number for name, number in program.registers.items() if name in SPECIAL or not name.startswith("%")}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, row in enumerate(code.tolist()):
        writes, reads = _registers_of(row)
        for register in reads:
            kept |= {register} if register not in first or stretch[first[register]] != stretch[at] else set()
            last[register] = at
        for register in writes:
            if register in first or row[GUARD]:
                kept.add(register)
            first.setdefault(register, at)
            last[register] = at
    place = {register: i for i, register in enumerate(sorted(kept | {0}))}
    free: list[int] = []
    ends: list[tuple[int, int]] = []
    n_places = len(place)
    for register, at in sorted(first.items(), key=lambda item: item[1]):
        if register not in place:
            while ends and ends[0][0] < at:
                free.append(heappop(ends)[1])
            place[register] = free.pop() if free else n_places
            n_places = max(n_places, place[register] + 1)
            heappush(ends, (last[register], place[register]))
    _move(program, place)


def _registers_of(row: list[int]) -> tuple[list[int], list[int]]:
    """The registers that an instruction writes, and those that it reads."""
    written, read = COLUMNS.get(Op(row[OP]), ((TO,), (X, Y, Z)))
    reads = [row[column] for column in read] + ([abs(row[GUARD]) - 1] if row[GUARD] else [])
    return [row[column] for column in written], reads


def _move(program: Program, place: dict[int, int]) -> None:
    """Give every register its new place."""
    for row in program.code:
        written, read = COLUMNS.get(Op(int(row[OP])), ((TO,), (X, Y, Z)))
        for column in (*written, *read):
            row[column] = place[int(row[column])]
        if row[GUARD]:
            row[GUARD] = np.sign(row[GUARD]) * (1 + place[abs(int(row[GUARD])) - 1])
    program.registers = {name: place[number] for name, number in program.registers.items() if number in place}
    program.constants = {place[number]: value for number, value in program.constants.items()}
    program.parameters = {i: place[number] for i, number in program.parameters.items()}


def _statements(body: str) -> Iterator[str]:
    """Statements and labels; registers that are declared in a block of their own get names of their own.

    Such blocks are not nested in each other; the outermost one is the kernel.
    """
    inner: dict[str, str] = {}
    n_blocks = 0
    for statement in re.split(r"[;\n]", re.sub(r"^\s*([{}])", r"\1\n", body, flags=re.MULTILINE)):
        words = statement.strip()
        if words in ("{", "}"):
            inner, n_blocks = {}, n_blocks + 1
        elif words.startswith(".reg") and "<" not in words:
            name = words.split()[-1]
            inner[name] = f"{name}_{n_blocks}"
        else:
            for name, own in inner.items():
                words = re.sub(rf"{name}\b", own, words)
            yield words


def _instructions(program: Program, words: str) -> list[list[int]]:
    """The instructions of one statement; those that put halves of a number together or take them apart are two."""
    match = STATEMENT.fullmatch(words)
    if match is None:
        raise UnknownInstructionError(words)
    guard, name, rest = match.groups()
    guarded = 0
    if guard:
        guarded = 1 + program.register(guard.lstrip("@!"))
        guarded = -guarded if "!" in guard else guarded
    try:
        rows = _rows(program, name, rest.strip())
    except (KeyError, ValueError, IndexError) as error:
        raise UnknownInstructionError(words) from error
    for row in rows:
        row[GUARD] = guarded
    return rows


def _row(op: Op, width: int, *registers: int, also: int = 0) -> list[int]:
    return [int(op), width, *registers, *(0,) * (4 - len(registers)), 0, also]


def _rows(program: Program, name: str, rest: str) -> list[list[int]]:
    """The instructions that a statement without its guard stands for."""
    first, *kinds = name.split(".")
    if name.startswith("bra"):
        return [_row(Op.BRANCH, 64)]
    if name == "ret":
        return [_row(Op.RETURN, 64)]
    if name in MANY:
        return [_of_many_threads(program, MANY[name], rest)]
    if first in ("ld", "st", "atom"):
        return [_of_memory(program, first, kinds, rest)]
    halves = HALVES.search(rest)
    if halves:
        low, high = halves.groups()
        if rest.startswith("{"):
            source = program.register(rest.split(", ")[-1])
            return [
                _row(Op.EXTEND_U, 32, program.register(low), source, source, program.constant(64)),
                _row(Op.SHR_U, 64, program.register(high), source, program.constant(32)),
            ]
        to = program.register(rest.split(", ")[0])
        return [_row(Op.PACK, 64, to, program.register(low), program.register(high))]
    return [_of_one_thread(program, first, kinds, [word.strip() for word in rest.split(",")])]


def _of_one_thread(program: Program, first: str, kinds: list[str], words: list[str]) -> list[int]:
    """An instruction that concerns the registers of one thread alone."""
    kind = kinds[-1]
    width = width_of(kind)
    to = program.register(words[0])
    sources = [program.operand(word, width) for word in words[1:]]
    if first == "cvt":
        return _conversion(program, kinds, to, sources[0])
    if first == "setp":
        return _row(_comparison(kinds[0], kind), width, to, *sources)
    if first == "bfi":
        position, length = (int(word) for word in words[3:])
        return _row(Op.BFI, width, to, *sources[:2], program.constant(position | length << 8))
    if kind[0] == "f" and first in REAL:
        if width != 64 and first not in ("abs", "neg"):
            raise UnknownInstructionError(f"{first}.{kind}")
        suffix = "_APPROX_F" if "approx" in kinds else "_F"
        return _row(Op[first.upper() + suffix], width, to, *sources)
    if first in ("mul", "mad"):
        if kinds[0] == "lo":
            return _row(Op[first.upper()], width, to, *sources)
        half = f"{first}_{kinds[0]}_{kind[0]}".upper()
        return _row(Op[half], 2 * width if kinds[0] == "wide" else width, to, *sources)
    if first in SIGNED:
        return _row(Op[f"{SIGNED[first]}_{kind[0].upper()}"], width, to, *sources)
    if first == "not" and kind == "pred":
        return _row(Op.NOT_PRED, width, to, *sources)
    return _row(Op[SIMPLE[first]], width, to, *sources)


def _comparison(relation: str, kind: str) -> Op:
    if kind[0] == "f":
        return Op[f"{relation.upper()}_F"]
    return Op[relation.upper() + ("" if relation in ("eq", "ne") else f"_{kind[0].upper()}")]


def _conversion(program: Program, kinds: list[str], to: int, source: int) -> list[int]:
    """From one type to another; the last two kinds are the new one and the old one."""
    *how, new, old = kinds
    width, old_width = width_of(new), width_of(old)
    if new == old == "f64":
        return _row({"rmi": Op.FLOOR_F, "sat": Op.SATURATE_F}[how[0]], 64, to, source)
    if new == "f64" and how == ["rn"] and old[0] in "su":
        return _row(Op.FLOAT_OF_S if old[0] == "s" else Op.FLOAT_OF_U, old_width, to, source)
    if (new, old, how) == ("s64", "f64", ["rzi"]):
        return _row(Op.S_OF_FLOAT, 64, to, source)
    if how or "f" in new + old:
        raise UnknownInstructionError(".".join(kinds))
    return _row(Op.EXTEND_S if old[0] == "s" else Op.EXTEND_U, width, to, source, source, program.constant(old_width))


def _of_many_threads(program: Program, op: Op, rest: str) -> list[int]:
    """A barrier, a shuffle or a vote."""
    words = [word.strip() for word in rest.split(",")]
    if op == Op.BARRIER:
        return _row(op, 64)
    if op == Op.WARP_BARRIER:
        return _row(op, 32, 0, 0, 0, program.operand(words[0], 32))
    if op == Op.VOTE_ANY:
        return _row(op, 1, program.register(words[0]), program.register(words[1]), 0, program.operand(words[2], 32))
    if op in (Op.SHUFFLE_XOR, Op.SHUFFLE_INDEX):
        to, also = words[0].split("|")
        source, lane, clamp, members = (program.operand(word, 32) for word in words[1:])
        return _row(op, clamp, program.register(to), source, lane, members, also=program.register(also))
    return _row(op, 32, program.register(words[0]), program.register(words[2]))


def _of_memory(program: Program, first: str, kinds: list[str], rest: str) -> list[int]:
    """A load, a store or an atomic addition; loads of parameters are moves."""
    kind, space = kinds[-1], kinds[0]
    match = ADDRESS.search(rest)
    if match is None or kind[0] == "s":
        raise UnknownInstructionError(rest)
    base, offset, width = match[1], int(match[2] or 0), width_of(kind)
    if space == "param":
        parameter = PARAMETER.search(base)
        if parameter is None or offset:
            raise UnknownInstructionError(rest)
        held = program.register(f"parameter {parameter[1]}")
        program.parameters[int(parameter[1])] = held
        return _row(Op.MOV, width, program.register(rest.split(",")[0].strip()), held)
    where = SHARED if space == "shared" else GLOBAL
    if space not in ("shared", "global", *([kind] if first == "ld" else [])):  # an address of any space: never shared
        raise UnknownInstructionError(rest)
    address = program.operand(base, 64)
    outside = [word.strip() for word in (rest[: match.start()] + rest[match.end() :]).split(",") if word.strip()]
    if first == "ld":
        return _row(Op.LOAD, width, program.register(outside[0]), address, 0, where, also=offset)
    if first == "st":
        return _row(Op.STORE, width, where, address, program.operand(outside[0], width), also=offset)
    if kinds[1:-1] != ["add"]:
        raise UnknownInstructionError(rest)
    to, value = outside
    added = program.operand(value, width)
    return _row(Op.ATOMIC_ADD, width, program.register(to), address, added, where, also=offset)


def float_bits(value: float) -> int:
    """The bits of a float64."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def starting_values(program: Program, parameters: list[Any]) -> dict[int, int]:
    """What registers hold from the start: constants, and parameters as they are passed."""
    found = dict(program.constants)
    for i, register in program.parameters.items():
        value = parameters[i]
        found[register] = float_bits(value) if isinstance(value, float) else int(value) & (2**64 - 1)
    return found
