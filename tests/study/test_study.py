"""Studies as a person writes them, right and wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from kduel.core.errors import InputError
from kduel.core.experiment import Contender
from kduel.study.contenders import check_name, contender_tables, name_all, read_contenders
from kduel.study.file import parse_study, read_study, schema, suites
from kduel.study.load import assemble, read_machine

HEAD = '[study]\nname = "s"\n'
TWO = '[[contender]]\nkernel = "debian:6.1"\n[[contender]]\nkernel = "debian:6.10"\n'
PIPE = '[[benchmark]]\nuse = "perf-sched-pipe"\n'


def study_of(text: str, **options):
    return assemble(parse_study(text, "s.toml"), text, "s.toml", **options)


def test_a_kernel_called_6_10_stays_6_10():
    assert [c.kernel for c in study_of(HEAD + TWO + PIPE).contenders] == ["debian:6.1", "debian:6.10"]


def test_a_version_that_is_a_number_is_refused():
    with pytest.raises(InputError, match="kernel: this must be text, and is a number"):
        study_of(HEAD + "[[contender]]\nkernel = 6.10\n" + PIPE)


def test_a_topology_of_the_command_line_takes_the_place_of_the_files_cpus():
    _, settings = read_machine({"kind": "qemu", "cpus": 2, "memory": "1G"}, "qemu:topology=two-llc")
    assert settings == {"memory": "1G", "topology": "two-llc"}
    _, settings = read_machine({"kind": "qemu", "cpus": 2}, "qemu:topology=two-llc,cpus=3")
    assert settings["cpus"] == 3, "what is given itself is not dropped silently"


def test_a_byte_order_mark_is_named():
    with pytest.raises(InputError) as refused:
        study_of("\ufeff" + HEAD + TWO + PIPE)
    assert refused.value.message == "s.toml begins with a byte order mark, which TOML has not"


def test_lists_are_matrices_in_the_order_of_the_lists():
    study = study_of(HEAD + TWO + '[[benchmark]]\nuse = "sysbench-cpu"\nthreads = [2, 1]\ntime = [1, 3]\n')
    assert [(s.parameters["threads"], s.parameters["time"]) for s in study.steps] == [(2, 1), (2, 3), (1, 1), (1, 3)]
    assert len({s.label for s in study.steps}) == 4


def test_contender_lists_are_matrices_with_names_of_their_own():
    text = HEAD + '[[contender]]\nkernel = ["debian:6.1", "debian:6.12"]\npolicy = ["other", "fifo:50"]\n' + PIPE
    assert study_of(text).names == [
        "debian-6.1 other",
        "debian-6.1 fifo:50",
        "debian-6.12 other",
        "debian-6.12 fifo:50",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "a = = 1\n", "line 3"),
        (HEAD + "delta = 1.0\ndelta = 2.0", "a key is there twice (at line 4"),
        (HEAD + "[study]", "a table is there twice (at line 3"),
        (HEAD + "colour = 1\n" + TWO + PIPE, "colour"),
        (HEAD + "delt = 1\n" + TWO + PIPE, "there is no key `delt`. Did you mean delta?"),
        (HEAD + TWO + PIPE + "[bolcks]\nmax = 9\n", "there is no key `bolcks`. Did you mean blocks?"),
        (
            HEAD + TWO + PIPE + "[bound]\nmetrc = 'x'\n",
            "Did you mean metric?\nThe keys of [bound]: metric, limit, share.",
        ),
        (HEAD + TWO + PIPE + "primry = ['x']\n", "there is no key `primry`. Did you mean primary?"),
        (HEAD + TWO + PIPE + "[[factor]]\nnam = 'x'\nlevels = [1, 2]\n", "Did you mean name?"),
        (HEAD + '[[contender]]\nkernl = "a"\n' + PIPE, "Did you mean kernel?"),
        (HEAD + 'delta = "one"\n' + TWO + PIPE, "delta"),
        (HEAD + "delta = -1\n" + TWO + PIPE, "delta"),
        (HEAD + "alpha = 0.7\n" + TWO + PIPE, "alpha"),
        (HEAD + "alpha = 1e-12\n" + TWO + PIPE, "alpha"),
        (HEAD + TWO + PIPE + "[blocks]\nmax = 0\n", "max"),
        (HEAD + TWO + PIPE + "[settle]\nseconds = -1\n", "seconds"),
        (HEAD + TWO, "no benchmark"),
        (HEAD + PIPE, "a comparison needs two"),
        (HEAD + TWO + '[[benchmark]]\nuse = "sysbanch"\n', "sysbanch"),
        (HEAD + TWO + PIPE + 'primary = ["speed"]\n', "speed"),
        (HEAD + TWO + PIPE + PIPE, "two benchmarks have the label"),
        (HEAD + TWO + '[[benchmark]]\nuse = "sysbench-cpu"\nthreads = "two"\n', "threads"),
        (HEAD + TWO + "[[benchmark]]\nthreads = 2\n", "use"),
        (HEAD + TWO + '[[contender]]\nkernel = "debian:6.1"\n' + PIPE, "two contenders are called"),
        (HEAD + '[[contender]]\nkernel = "a"\ncolor = "red"\n' + PIPE, "color"),
        (HEAD + TWO + PIPE + '[[benchmark]]\nuse = "sysbench-cpu"\nthreads = []\n', "threads is an empty list"),
        (HEAD + TWO + '[[contender]]\nkernel = "c"\npolicy = []\n' + PIPE, "policy is an empty list"),
        (
            HEAD + TWO + '[[contender]]\nkernel = "c"\npolicy = "fifo:200"\n' + PIPE,
            "c fifo:200: the policy 'fifo:200'",
        ),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(text: str, said: str):
    with pytest.raises(InputError) as caught:
        study_of(text)
    assert said in str(caught.value)
    assert caught.value.remedy
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ('[study]\nname = "x"\nalpha = 0.5\n', ("from 1e-06", "below 0.5")),
        ('[study]\nname = "x"\ndelta = 200.0\n', ("above 0", "at most 100")),
        ('[study]\nname = "x"\ndelta = 0.0\n', ("above 0",)),
        ('[study]\nname = "x"\n[blocks]\nfixed = 100001\n', ("from 1 to 100,000",)),
        ('[study]\nname = "x"\n[blocks]\nmax = 0\n', ("from 1 to 100,000",)),
    ],
)
def test_both_limits_of_a_number_are_named(words: str, limits: tuple[str, ...]):
    with pytest.raises(InputError) as caught:
        study_of(words + TWO + PIPE)
    assert all(limit in caught.value.remedy for limit in limits), caught.value.remedy


def test_a_fixed_number_of_blocks_beside_a_most_is_refused():
    """As --blocks with --max-blocks is; the command line's own number replaces both."""
    both = HEAD + "[blocks]\nfixed = 1\nmax = 3\n" + TWO + PIPE
    with pytest.raises(InputError, match=r"blocks\.fixed and blocks\.max exclude each other") as caught:
        study_of(both)
    assert "fixed" in caught.value.remedy
    assert study_of(both.replace("max = 3\n", "")).blocks.fixed == 1
    assert study_of(both.replace("fixed = 1\n", "")).blocks.max == 3
    assert study_of(both.replace("max = 3\n", ""), max_blocks=4).blocks.max == 4


def test_an_unreadable_study_is_named(tmp_path: Path):
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    for name in ("none.toml", "bad.toml", "."):
        with pytest.raises(InputError, match="cannot read") as caught:
            read_study(tmp_path / name)
        assert "kduel init" in caught.value.remedy


def test_the_machine_of_the_command_line_replaces_what_it_names():
    table = {"kind": "qemu", "cpus": 2, "memory": "1G"}
    assert read_machine(table, "qemu:cpus=4") == ("qemu", {"cpus": 4, "memory": "1G"})
    assert read_machine(table, "icount") == ("icount", {})
    assert read_machine(table, "") == ("qemu", {"cpus": 2, "memory": "1G"})
    assert read_machine({}, "ssh:box.example,user=root") == ("ssh", {"place": "box.example", "user": "root"})


def test_the_same_kernel_twice_gets_two_names():
    study = study_of(HEAD + contender_tables(["debian:6.12"] * 2, True) + PIPE)
    assert study.names == ["debian-6.12 #1", "debian-6.12 #2"]


@pytest.mark.parametrize("name", suites())
def test_every_suite_can_be_assembled(name: str):
    study = study_of(suites()[name] + contender_tables(["debian:6.1", 'a"\\b.deb'], False))
    assert study.contenders[1].kernel == 'a"\\b.deb'
    assert study.steps
    # A run that may stop when it is decided needs something that decides; causes are only described.
    assert any(step.primary for step in study.steps) != (name == "realtime-causes" and study.blocks.fixed == 10)


def test_the_study_that_init_writes_is_valid_and_agrees_with_the_schema():
    text = (Path(__file__).parents[2] / "src/kduel/cli/init.toml").read_text()
    assert study_of(text).steps
    jsonschema.validate(tomllib.loads(text), schema())
    matrix = HEAD + '[[contender]]\nkernel = ["debian:6.1", "debian:6.12"]\npolicy = ["other", "rr:5"]\n' + PIPE
    jsonschema.validate(tomllib.loads(matrix), schema())
    broken = tomllib.loads(text) | {"colour": 1}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema())


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        (["a/bzImage", "b/bzImage"], ["a/bzImage", "b/bzImage"]),
        (["/x/old/arch/bzImage", "/x/new/arch/bzImage"], ["old/arch/bzImage", "new/arch/bzImage"]),
        (["a/bzImage", "b/vmlinuz", "debian:6.1"], ["bzImage", "vmlinuz", "debian-6.1"]),
        (["tree:/src/linux", "tree:/src/next/linux"], ["src/linux", "next/linux"]),
        (["./x", "./sub/../y", "../z"], ["x", "y", "z"]),
    ],
)
def test_images_of_one_name_are_told_apart_by_their_paths(kernels: list[str], names: list[str]) -> None:
    assert [c.name for c in name_all([Contender(kernel=kernel) for kernel in kernels], "x")] == names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"modules": "mo"}, {"modules": "./mo/"}),
        ({"cmdline": "quiet"}, {"cmdline": " quiet"}),
        ({"sysctl": {"vm.swappiness": "1"}}, {"sysctl": {"vm/swappiness": "1"}}),
        ({"sysctl": {"net/ipv4/conf/eth0.1/rp_filter": "1"}}, {"sysctl": {"net.ipv4.conf.eth0/1.rp_filter": "1"}}),
    ],
)
def test_one_contender_written_in_two_ways_is_no_comparison(one: dict[str, Any], other: dict[str, Any]) -> None:
    pair = [Contender(kernel="./bzImage", **settings) for settings in (one, other)]
    with pytest.raises(InputError, match=r"are one contender|two contenders are called"):
        name_all(pair, "x")
    assert name_all([msgspec.structs.replace(c, name=name) for c, name in zip(pair, "ab", strict=True)], "x")


@pytest.mark.parametrize("other", ["{0}/bzImage", "./link", "sub/../bzImage"])
def test_one_image_by_two_paths_is_no_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "bzImage").write_bytes(b"a kernel")
    (tmp_path / "link").symlink_to("bzImage")
    pair = [Contender(kernel="./bzImage"), Contender(kernel=other.format(tmp_path))]
    with pytest.raises(InputError, match=r"are one contender|two contenders are called"):
        name_all(pair, "x")
    (tmp_path / "copy").write_bytes(b"a kernel")
    assert len(name_all([pair[0], Contender(kernel="./copy")], "x")) == 2


@pytest.mark.parametrize("other", ["tree:./t", "tree:{0}/t", "tree:link"])
def test_one_tree_by_two_paths_is_no_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to("t")
    with pytest.raises(InputError, match=r"are one contender|two contenders are called"):
        name_all([Contender(kernel="tree:t"), Contender(kernel=other.format(tmp_path))], "x")
    (tmp_path / "host").touch()
    assert len(name_all([Contender(kernel="host"), Contender(kernel="./host", name="file")], "x")) == 2


@pytest.mark.parametrize("kernels", [("./bzImage", "./bzImage"), ("/boot/bzImage", "bzImage"), ("a/./b", "a/c/b")])
def test_a_name_that_is_derived_is_one_that_may_be_given(kernels: tuple[str, str]) -> None:
    """The exact part of a run has it as a given name."""
    named = name_all(
        [Contender(kernel=k, modules=f"./{m}/") for k, m in zip(kernels, ("mo", "mn"), strict=True)], "x"
    )
    for contender in named:
        check_name(contender.name, "x")


def test_one_image_with_other_modules_is_told_apart_by_them() -> None:
    image = "./bzImage"
    named = name_all([Contender(kernel=image, modules=place) for place in ("old", "new")], "x")
    assert [one.name for one in named] == ["bzImage old", "bzImage new"]
    apart = name_all([Contender(kernel=kernel, modules="m") for kernel in ("bzImage", "vmlinuz")], "x")
    assert [one.name for one in apart] == ["bzImage", "vmlinuz"], "names of runs that there are stay"
    with pytest.raises(InputError, match="two contenders are called"):
        name_all([Contender(kernel=image, modules="old")] * 2, "x")


def test_one_image_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="two contenders are called 'a/bzImage'"):
        name_all([Contender(kernel="a/bzImage")] * 2, "x")


def test_counting_once_is_refused_where_nothing_is_counted_under_conditions():
    timed = '[[benchmark]]\nuse = "kbench"\noperation = "pipe"\n'
    with pytest.raises(InputError, match="--single changes nothing"):
        study_of(HEAD + TWO + PIPE + timed, single=True)
    counted = study_of(HEAD + TWO + PIPE + timed + 'mode = "exact"\n', single=True)
    assert [step.parameters.get("conditions") for step in counted.steps] == [None, 0]
    assert counted.blocks.fixed == 1


COUNTED = '[[benchmark]]\nuse = "kbench"\nmode = "exact"\noperation = "pipe"\n'
BOOT = '[[benchmark]]\nuse = "boot-instructions"\nprimary = "*"\n'


@pytest.mark.parametrize(
    ("machine", "asked", "blocks"),
    [
        ("icount:layouts=3", {"fixed_blocks": 3}, 3),
        ("icount:layouts=3", {}, 3),
        ("icount:layouts=3", {"fixed_blocks": 2}, 2),
        ("icount:layouts=3", {"max_blocks": 2}, 2),
        ("icount", {}, 1),
        ("icount:cpus=2,scheduling=true,online=both", {}, 2),
    ],
)
def test_counting_once_counts_once_in_each_layout(machine: str, asked: dict[str, int], blocks: int) -> None:
    counted = COUNTED if "scheduling" not in machine else '[[benchmark]]\nuse = "wakeup"\nconditions = 3\n'
    made = study_of(HEAD + TWO + counted, single=True, machine=machine, **asked)
    assert made.blocks.fixed == blocks


@pytest.mark.parametrize("asked", [{"fixed_blocks": 1}, {"max_blocks": 1}])
def test_both_orders_of_cpus_take_two_blocks(asked: dict[str, int]) -> None:
    words = HEAD + TWO + '[[benchmark]]\nuse = "wakeup"\n'
    with pytest.raises(InputError, match='online = "both" takes two blocks'):
        study_of(words, machine="icount:cpus=2,scheduling=true,online=both", **asked)
    assert study_of(words, machine="icount:cpus=2,scheduling=true,online=both", fixed_blocks=2).blocks.count == 2


@pytest.mark.parametrize("option", ["fixed_blocks", "max_blocks"])
def test_blocks_that_would_only_repeat_a_count_are_refused(option: str) -> None:
    with pytest.raises(InputError, match="--single counts each operation once") as refused:
        study_of(HEAD + TWO + COUNTED, single=True, machine="icount", **{option: 2})
    assert "--layouts 2" in refused.value.remedy
    with pytest.raises(InputError, match="in each of 2 layouts"):
        study_of(HEAD + TWO + COUNTED, single=True, machine="icount:layouts=2", **{option: 3})
    assert study_of(HEAD + TWO + COUNTED, single=True, machine="icount", **{option: 1}).blocks.fixed == 1


def test_with_layouts_the_boot_is_left_out_with_a_word() -> None:
    made = study_of(HEAD + TWO + BOOT + COUNTED, machine="icount:layouts=2")
    assert [step.label for step in made.steps] == ["pipe"]
    assert len(made.left_out) == 1 and made.left_out[0].startswith("boot is left out: ")
    assert "layouts" in made.left_out[0]
    whole = study_of(HEAD + TWO + BOOT + COUNTED, machine="icount")
    assert len(whole.steps) == 2 and not whole.left_out


def test_a_study_of_the_boot_alone_is_refused_with_layouts() -> None:
    with pytest.raises(InputError, match="layouts") as refused:
        study_of(HEAD + TWO + BOOT, machine="icount:layouts=2")
    assert refused.value.remedy


def test_a_word_of_the_command_line_may_set_what_differs() -> None:
    words = [
        "debian:6.12",
        "debian:6.12,cmdline=mitigations=off isolcpus=1,2",
        "debian-source:6.12,arch=arm64,config=tinyconfig,sysctl=vm.swappiness=10,sysctl=kernel.x=a,b",
        'debian:6.12,scheduler=scx_lavd --autopower,policy=rr:50,cmdline=quiet "x"',
        "./bzImage,modules=/lib/modules/6,12",
        "./a_6.12_amd64.deb,b_6.12_amd64.deb,name=mine",
    ]
    text = contender_tables(words, numbered=False)
    plain, line, sysctls, all_others, image, packages = read_contenders(tomllib.loads(text)["contender"], "words")
    assert plain.name == "debian-6.12" and not plain.cmdline
    assert (line.kernel, line.cmdline) == ("debian:6.12", "mitigations=off isolcpus=1,2")
    assert line.name == "debian-6.12 mitigations=off isolcpus=1,2"
    assert (image.kernel, image.modules) == ("./bzImage", "/lib/modules/6,12")
    assert (packages.kernel, packages.name) == ("./a_6.12_amd64.deb,b_6.12_amd64.deb", "mine")
    assert contender_tables([words[-1]] * 2, numbered=True).count('name = "mine #') == 2
    assert sysctls.kernel == "debian-source:6.12,arch=arm64,config=tinyconfig"
    assert sysctls.sysctl == {"vm.swappiness": "10", "kernel.x": "a,b"}
    assert (all_others.scheduler, all_others.policy, all_others.cmdline) == (
        "scx_lavd --autopower",
        "rr:50",
        'quiet "x"',
    )


@pytest.mark.parametrize(
    "word",
    [
        "debian:6.12,cmdline=",
        "debian:6.12,sysctl=vm.swappiness",
        "debian:6.12,sysctl==1",
        "a,policy=rr:1,policy=rr:2",
        "./bzImage,modules=",
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="no setting of a contender"):
        contender_tables([word, "debian:6.1"], numbered=False)
