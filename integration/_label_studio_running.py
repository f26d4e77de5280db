"""Shared parts of the scripts for Label Studio: its server, a browser that is logged in, recordings and the main function."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from _label_studio_people import PASSWORD
from _running import RECORDED, Trial, free_port, offline, run_server, wait_until

OWNER, OTHERS = "ann@example.com", ("bob@example.com", "cy@example.com")


@contextlib.contextmanager
def run_label_studio(context: Trial, executable: Path) -> Iterator[str]:
    """Run Label Studio on loopback inside a block, and yield its address."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    data = context.folder / "label-studio"
    env = offline(
        LABEL_STUDIO_BASE_DATA_DIR=str(data), COLLECT_ANALYTICS="false", LATEST_VERSION_CHECK="false", SENTRY_DSN="",
        SSRF_PROTECTION_ENABLED="false",  # otherwise it posts nothing to this machine
    )  # fmt: skip
    command = [executable, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", port, "--data-dir", data]
    command += ["--username", OWNER, "--password", PASSWORD]
    with run_server(command, context.folder, env, context.folder / "label-studio.log"):
        wait_until(lambda: httpx.get(f"{address}/api/version", trust_env=False).status_code == 200, "the server", 300)
        version = httpx.get(f"{address}/api/version", trust_env=False).json()["release"]
        print(f"Label Studio {version}", flush=True)
        yield address


@contextlib.contextmanager
def open_browser(context: Trial, address: str) -> Iterator[Any]:
    """Start a browser that is logged in as the owner, and yield it; yield None without chromium and its driver."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print("  --    skipped: there is no chromium with chromedriver")
        yield None
        return
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    options = webdriver.ChromeOptions()
    flags = "headless no-sandbox disable-gpu disable-background-networking disable-quic no-first-run disable-component-update"
    for flag in (
        *flags.split(),
        "disable-sync",
        "window-size=1500,1000",
        f"user-data-dir={context.folder / 'chromium'}",
    ):
        options.add_argument(f"--{flag}")
    options.binary_location = str(shutil.which("chromium"))
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        browser.set_page_load_timeout(120)
        browser.get(f"{address}/user/login/")
        browser.find_element(By.NAME, "email").send_keys(OWNER)
        browser.find_element(By.NAME, "password").send_keys(PASSWORD)
        browser.find_element(By.CSS_SELECTOR, "button[type=submit]").click()
        wait_until(lambda: "login" not in browser.current_url, "the login", 60)
        yield browser
    finally:
        browser.quit()


def record(context: Trial, name: str, content: Any) -> None:
    """Store an answer of the server for the tests, without tokens."""
    if context.record is None:
        return
    path = context.record / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_anonymous(content), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _anonymous(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: "0" * 40 if key == "token" else _anonymous(value) for key, value in content.items()}
    return [_anonymous(one) for one in content] if isinstance(content, list) else content


def main(run_trial: Callable[[Trial, Path, Path | None], None], recorded: str) -> None:
    """Find or install Label Studio, run the trial, clean up, and report the result by text and exit code."""
    parser = argparse.ArgumentParser(description="Try wisecrowd with a real Label Studio.")
    parser.add_argument(
        "--label-studio", type=Path, help="its executable; by default it is installed and removed afterwards"
    )
    parser.add_argument("--record", action="store_true", help="store the answers of the server under tests/recorded")
    parser.add_argument("--screenshot", type=Path, help="open a task with chromium and save a screenshot")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wisecrowd-label-studio-") as name:
        folder = Path(name)
        executable = options.label_studio
        if executable is None:
            venv.create(folder / "venv", with_pip=True)
            python = folder / "venv/bin/python"
            pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "label-studio"]
            subprocess.run(pip, check=True, timeout=3600)
            executable = folder / "venv/bin/label-studio"
        work = folder / "work"
        work.mkdir()
        record_folder = RECORDED / recorded if options.record else None
        context = Trial("label-studio", work, Path(os.path.realpath(executable)), record_folder)
        try:
            run_trial(context, executable.absolute(), options.screenshot)
        except Exception:
            traceback.print_exc()
            log = work / "label-studio.log"
            print(log.read_text(errors="replace")[-3000:] if log.exists() else "")
            context.failed.append("an error ended the trial")
    counted = f"{context.n_checks - len(context.failed)} of {context.n_checks} checks passed"
    print(
        f"label-studio: {'FAILED: ' + '; '.join(context.failed) if context.failed else 'all checks passed'} ({counted})"
    )
    sys.exit(bool(context.failed))
