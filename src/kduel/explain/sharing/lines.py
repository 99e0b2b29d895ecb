"""Names of shared lines: `mm_struct.mmap_lock.count`, a variable, a per-CPU variable, a page's record. Never a guess."""

from kduel.explain.sharing.memory import IMAGE, MEMORY_MAP, MEMORY_MAP_END, MODULES_END, PAGE, Memory, NamelessError

LINE = 64
STRUCTURES = {
    "filp": "file", "files_cache": "files_struct", "fs_cache": "fs_struct", "signal_cache": "signal_struct",
    "sighand_cache": "sighand_struct", "cred_jar": "cred", "inode_cache": "inode", "shmem_inode_cache": "shmem_inode_info",
    "sock_inode_cache": "socket_alloc", "proc_inode_cache": "proc_inode", "ext4_inode_cache": "ext4_inode_info",
    "mnt_cache": "mount", "UDP": "udp_sock", "UNIX": "unix_sock", "UNIX-STREAM": "unix_sock", "TCP": "tcp_sock",
    "skbuff_head_cache": "sk_buff", "radix_tree_node": "xa_node", "kernfs_node_cache": "kernfs_node", "eventpoll_epi": "epitem",
    "net_namespace": "net", "uid_cache": "user_struct",
}  # fmt: skip
"""Structures by slab cache, where it is not called like its structure."""
OPEN_ENDED = "task_struct"
"""Its last field, the FPU's state, is as long as the processor needs, so that objects are shorter than the type."""
VARIABLES = {
    "init_task": "task_struct", "init_net": "net", "init_user_ns": "user_namespace", "init_pid_ns": "pid_namespace",
    "init_css_set": "css_set", "init_ucounts": "ucounts", "root_user": "user_struct", "init_struct_pid": "pid",
    "init_nsproxy": "nsproxy", "init_cred": "cred", "init_mm": "mm_struct", "init_files": "files_struct", "init_fs": "fs_struct",
    "init_ipc_ns": "ipc_namespace", "init_uts_ns": "uts_namespace", "init_sighand": "sighand_struct",
    "init_signals": "signal_struct", "root_task_group": "task_group", "contig_page_data": "pglist_data",
}  # fmt: skip
"""Structures of variables; BTF has those of per-CPU variables only."""


Parts = tuple[str, list[str]]
"""Beginning of a line's name, and what of it is used: `tcp_sock.` and its fields; nothing and variables."""
NOTHING: Parts = ("", [])


class Namer:
    def __init__(self, memory: Memory, cpus: int) -> None:
        self.memory, self.cpus = memory, cpus

    def name(self, physical: int, address: int, bytes_used: int) -> str:
        """The line at a physical and a virtual address, by those of its 64 bytes; empty where it has no name."""
        thing, names = self.parts(physical, address, bytes_used)
        return f"{thing}{shorten_names(names)}" if names else ""

    def parts(self, physical: int, address: int, bytes_used: int) -> Parts:
        """The beginning of that name, and all that is used; nothing where the line has no name."""
        used = [at for at in range(LINE) if bytes_used >> at & 1] or [0]
        try:
            if MEMORY_MAP <= address < MEMORY_MAP_END:
                return self.fields("page", 0, used)
            if found := self.memory.per_cpu(address + used[0], self.cpus):
                return "per-CPU ", self.variable(found[1] - used[0], used)
            if IMAGE <= address < MODULES_END:
                return "", self.variable(address, used)
            found_object = self.slab_object(physical, used)
            return found_object if found_object[1] else self.node(address, used)
        except NamelessError:
            return NOTHING

    def variable(self, address: int, used: list[int]) -> list[str]:
        """A variable of the kernel, with its field where its type is known."""
        names: list[str] = []
        for at in used:
            name, inside = self.memory.symbols.at(address + at)
            number = self.memory.btf.variables.get(name) or self.memory.btf.structures.get(VARIABLES.get(name, ""))
            field = (
                self.memory.btf.field(number, inside)
                if number is not None
                else f"+{inside & ~7}"
                if inside >= 8
                else ""
            )
            text = f"{name}{field}" if field.startswith("+") else ".".join(filter(None, (name, field)))
            if text not in names:
                names.append(text)
        return names

    def fields(self, structure: str, first: int, used: list[int]) -> Parts:
        """Fields of a structure; `first` is the line's place in it, which may be before its beginning."""
        number = self.memory.btf.structures.get(structure)
        if number is None:
            raise NamelessError(f"no type information on {structure}")
        size, names = self.memory.btf.size(number), list[str]()
        for at in used:
            if 0 <= first + at < size and (field := self.memory.btf.field(number, first + at)) not in names:
                names.append(field)
        return f"{structure}.", names

    def allocator(self, physical: int, bytes_used: int) -> int | None:
        """The address from which the object at those bytes of a line was allocated, where the kernel keeps it."""
        used = next((at for at in range(LINE) if bytes_used >> at & 1), 0)
        try:
            slab = self.memory.slab_of_page(physical // PAGE)
            if slab is None or (track := slab[1].track) is None:
                return None
            first, cache = slab
            inside = (physical + used - first * PAGE) % cache.size
            return self.memory.unpack("<Q", physical + used - inside + track)[0] or None
        except NamelessError:
            return None

    def slab_object(self, physical: int, used: list[int]) -> Parts:
        """An object of a slab; with its field where the cache holds one kind of structure."""
        slab = self.memory.slab_of_page(physical // PAGE)
        if slab is None:
            return NOTHING
        first, cache = slab
        place = (physical + used[0] - first * PAGE) % cache.size - used[0]
        structure = STRUCTURES.get(cache.name, cache.name)
        number = self.memory.btf.structures.get(structure)
        if (
            number is not None
            and (structure == OPEN_ENDED or self.memory.btf.size(number) <= cache.object_size)
            and (found := self.fields(structure, place, used))[1]
        ):
            return found
        return "", [f"{cache.name}+{place + used[0]}"]

    def node(self, address: int, used: list[int]) -> Parts:
        """A memory node's structure, which is allocated at boot; empty where it is none."""
        symbols, number = self.memory.symbols, self.memory.btf.structures.get("pglist_data")
        if number is None or "node_data" not in symbols.known:
            return NOTHING
        begin = self.memory.word(symbols.address("node_data"))
        return (
            self.fields("pglist_data", address - begin, used)
            if begin <= address < begin + self.memory.btf.size(number)
            else NOTHING
        )


MOST = 2
"""Names of one line."""
WAYS = 4
"""Fields of a union that are named."""


def shorten_names(names: list[str]) -> str:
    """The first names, without the innermost parts that say no more than that it is a number."""
    trimmed = list(dict.fromkeys(trim_field(name) for name in names))
    return ", ".join(trimmed[:MOST]) + (", ..." if len(trimmed) > MOST else "")


INNERMOST = frozenset(("counter", "refs", "val", "locked", "pending", "locked_pending", "tail", "raw_lock", "rlock", "head", "next", "prev"))  # fmt: skip


def trim_field(name: str) -> str:
    """`mmap_lock.count.counter` is `mmap_lock.count`."""
    words = name.split(".")
    while len(words) > 1 and INNERMOST.issuperset(words[-1].split("|")):
        words.pop()
    ways = words[-1].split("|")
    words[-1] = "|".join(ways[:WAYS]) + ("|..." if len(ways) > WAYS else "")
    return ".".join(words)
