from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import JobConfig, load_config
from schemas.errors import ConfigError
from transforms.storage import S3Access

MINIMAL = '[input]\nshards = ["capturas/*.tar"]\n[output]\ndataset = "salida"\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "trabajo.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(write(folder, text), overrides)
    return str(caught.value)


def test_a_minimal_job_has_the_documented_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, MINIMAL))
    assert config.model.profile == "nano"
    assert (config.sampling.k, config.decision.threshold) == (5, 0.8)
    assert config.label_studio.url is None


def test_paths_of_the_file_start_at_its_folder_and_addresses_stay(tmp_path: Path) -> None:
    (tmp_path / "pesos").mkdir()
    text = (
        '[input]\nshards = ["a/*.tar", "s3://cubo/b.tar", "carpeta/"]\nqueries = "../q.jsonl"\n'
        '[output]\ndataset = "s3://cubo/salida"\n'
        '[model]\nprofile = "mio.toml"\ncheckpoint = "pesos"\n'
    )
    config = load_config(write(tmp_path, text))
    assert config.input.shards == (
        f"{tmp_path}/a/*.tar",
        "s3://cubo/b.tar",
        f"{tmp_path}/carpeta/",
    )
    assert config.input.queries == f"{tmp_path.parent}/q.jsonl"
    assert config.output.dataset == "s3://cubo/salida"
    assert config.model.profile == f"{tmp_path}/mio.toml"
    assert config.model.checkpoint == f"{tmp_path}/pesos"


def test_a_model_id_and_a_profile_name_are_no_paths(tmp_path: Path) -> None:
    text = MINIMAL + '[model]\nprofile = "holo2"\ncheckpoint = "Hcompany/Holo2-4B"\n'
    config = load_config(write(tmp_path, text))
    assert (config.model.profile, config.model.checkpoint) == ("holo2", "Hcompany/Holo2-4B")


def test_paths_of_overrides_start_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "aca"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    config = load_config(write(tmp_path, MINIMAL), ("output.dataset=otra",))
    assert config.output.dataset == f"{elsewhere}/otra"


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("sampling.k=3", "sampling", "k", 3),
        ("decision.threshold=1", "decision", "threshold", 1.0),
        ("label_studio.push=false", "label_studio", "push", False),
        ("model.checkpoint=Qwen/Qwen3-VL-8B", "model", "checkpoint", "Qwen/Qwen3-VL-8B"),
        ('label_studio.project="Revisión de mayo"', "label_studio", "project", "Revisión de mayo"),
        ("label_studio.project=Revisión de mayo", "label_studio", "project", "Revisión de mayo"),
        ("model.revision=20260101", "model", "revision", "20260101"),
        ("model.frame=norm_1000", "model", "frame", "norm_1000"),
        ("label_studio.url=http://127.0.0.1:8080", "label_studio", "url", "http://127.0.0.1:8080"),
    ],
)
def test_overrides_are_toml_where_they_can_and_text_where_not(
    tmp_path: Path, override: str, section: str, key: str, value: object
) -> None:
    config = load_config(write(tmp_path, MINIMAL), (override,))
    assert getattr(getattr(config, section), key) == value


def test_one_shard_may_be_given_as_plain_text_and_no_file_is_needed() -> None:
    config = load_config(None, ("input.shards=/datos/a.tar", "output.dataset=/datos/salida"))
    assert config.input.shards == ("/datos/a.tar",)


def test_an_engine_argument_keeps_its_type(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, MINIMAL), ("model.engine.max_model_len=4096",))
    assert config.model.engine == {"max_model_len": 4096}


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (
            "[decision]\ntreshold = 0.5\n",
            "unknown key `decision.treshold`; did you mean `decision.threshold`?",
        ),
        ("[modl]\nprofile = 'nano'\n", "unknown section or key `modl`; did you mean `model`?"),
        (
            "[model]\nthreshold = 0.5\n",
            "unknown key `model.threshold`; did you mean `decision.threshold`?",
        ),
        ("[decision]\nzzz = 1\n", "[decision] has: threshold, audit_share, unusable"),
    ],
)
def test_an_unknown_key_names_the_nearest_valid_one(
    tmp_path: Path, extra: str, expected: str
) -> None:
    assert expected in refusal(tmp_path, MINIMAL + extra)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (
            '[sampling]\nk = "cinco"\n',
            '`sampling.k` is "cinco", but must be a whole number, without quotes',
        ),
        (
            '[sampling]\nk = "5"\n',
            '`sampling.k` is "5", but must be a whole number, without quotes',
        ),
        ("[sampling]\nk = 2.5\n", "`sampling.k` is 2.5, but must be a whole number"),
        ("[sampling]\nk = 0\n", "`sampling.k` is 0, but must be at least 1"),
        ("[decision]\nthreshold = 1.5\n", "`decision.threshold` is 1.5, but must be at most 1"),
        ('[decision]\nunusable = "drop"\n', "but must be one of 'review' or 'reject'"),
        ('[model]\nframe = "pixels"\n', "but must be one of 'original_px', 'seen_px', 'norm_1000'"),
        ("[model]\nprofile = 3\n", "`model.profile` is 3, but must be text in quotes"),
        (
            '[label_studio]\npush = "yes"\n',
            '`label_studio.push` is "yes", but must be true or false',
        ),
        ('[label_studio]\nproject = "ab"\n', "must have at least 3 characters"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(tmp_path: Path, extra: str, expected: str) -> None:
    message = refusal(tmp_path, MINIMAL + extra)
    assert expected in message
    assert "trabajo.toml" in message


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, '[input]\nshards = []\n[sampling]\nk = "x"\nkk = 1\n')
    assert message.startswith(f"{tmp_path}/trabajo.toml: 4 problems\n")
    for part in ("`input.shards`", "section `output` is missing", "`sampling.k`", "`sampling.kk`"):
        assert part in message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[label_studio]\ntoken = "abc123secreto"\n', "label_studio.token"),
        ('[model.engine]\nhf_token = "abc123secreto"\n', "model.engine.hf_token"),
        ('[output]\naws_secret_access_key = "abc123secreto"\n', "output.aws_secret_access_key"),
        ('password = "abc123secreto"\n', "password"),
        ('[label_studio]\ntoken_env = "abc123secreto"\n', "label_studio.token_env"),
        ('[label_studio]\nurl = "http://ana:abc123secreto@localhost"\n', "label_studio.url"),
    ],
)
def test_a_secret_is_refused_and_never_repeated(tmp_path: Path, text: str, key: str) -> None:
    message = refusal(tmp_path, text)
    assert f"`{key}`" in message
    assert "environment variable" in message
    assert "abc123secreto" not in message


def test_a_secret_in_an_override_is_refused_too(tmp_path: Path) -> None:
    message = refusal(tmp_path, MINIMAL, "model.engine.hf_token=abc123secreto")
    assert "abc123secreto" not in message


@pytest.mark.parametrize("key", ["max_tokens", "tokenizer_mode", "max_num_batched_tokens"])
def test_engine_arguments_about_tokens_are_no_secrets(tmp_path: Path, key: str) -> None:
    text = MINIMAL + f'[model.engine]\n{key} = "auto"\n'
    assert load_config(write(tmp_path, text)).model.engine == {key: "auto"}


@pytest.mark.parametrize("override", ["k=3", "sampling.k", "=3", "sampling..k=3"])
def test_an_override_without_a_section_is_explained(tmp_path: Path, override: str) -> None:
    assert "section.key=value" in refusal(tmp_path, MINIMAL, override)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nada\.toml: there is no such job file"):
        load_config(tmp_path / "nada.toml")
    with pytest.raises(ConfigError, match=r"not valid TOML: .*line 1"):
        load_config(write(tmp_path, "[input\n"))
    broken = tmp_path / "latin.toml"
    broken.write_bytes("# año".encode("cp1252"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(broken)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_override_ever_raises_anything_but_a_config_error(key: str, value: str) -> None:
    overrides = ("input.shards=/a.tar", "output.dataset=/b", f"sampling.{key}={value}")
    try:
        assert isinstance(load_config(None, overrides), JobConfig)
    except ConfigError as error:
        assert str(error)


@pytest.mark.parametrize("key", ["cost.machine_hour", "decision.threshold", "model.engine.x.y"])
@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e999"])
def test_a_number_that_is_not_finite_is_refused_everywhere(
    tmp_path: Path, key: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=f"`{key}` is -?(inf|nan), but must be a finite number"):
        load_config(write(tmp_path, MINIMAL), (f"{key}={value}",))
    section, _, name = key.rpartition(".")
    assert "finite" in refusal(tmp_path, MINIMAL + f"[{section}]\n{name} = {value}\n")
    assert "finite" in refusal(tmp_path, MINIMAL + f"[{section}]\n{name} = [1, {value}]\n")


def test_whoever_pays_for_requests_says_so_in_the_job(tmp_path: Path) -> None:
    plain = load_config(write(tmp_path, MINIMAL), ("input.s3_endpoint=http://127.0.0.1:9",))
    assert plain.input.s3 == "http://127.0.0.1:9"
    paying = load_config(write(tmp_path, MINIMAL), ("input.s3_requester_pays=true",))
    assert paying.input.s3 == S3Access(None, requester_pays=True)
