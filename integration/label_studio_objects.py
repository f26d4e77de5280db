"""Label Studio with spans, boxes, points and texts: several people mark, wisecrowd aggregates, and the results are pushed back.

    python integration/label_studio_objects.py [--label-studio EXECUTABLE] [--record] [--screenshot FILE]

A person also marks a word in the browser, so that the format of the interface itself is recorded. See ``label_studio.py`` for the
options.
"""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from _label_studio_people import Person
from _label_studio_running import OTHERS, OWNER, main, open_browser, record, run_label_studio
from _running import Trial, offline, wait_until

import wisecrowd as wc
from wisecrowd.io import read_project

WIDTH, HEIGHT = 320, 200
CONFIG = """<View>
<Labels name="names" toName="text"><Label value="PER"/><Label value="LOC"/></Labels><Text name="text" value="$text"/>
<HyperTextLabels name="terms" toName="page"><Label value="TERM"/></HyperTextLabels><HyperText name="page" value="$page"/>
<RectangleLabels name="objects" toName="image"><Label value="cat"/><Label value="dog"/></RectangleLabels>
<KeyPointLabels name="eyes" toName="image"><Label value="eye"/></KeyPointLabels>
<Image name="image" value="$image"/>
<TextArea name="caption" toName="image"/>
</View>"""
QUESTIONS = {"names": "spans", "terms": "spans", "objects": "boxes", "eyes": "points", "caption": "texts"}
TEXTS = ["Ann lives in Rome.", "Bob left Paris for Lima.", "Grüße aus Köln 🍜, sagt Cy.", "Nobody is here."]
#: True names: start, end and label.
NAMES = [
    [(0, 3, "PER"), (13, 17, "LOC")],
    [(0, 3, "PER"), (9, 14, "LOC"), (19, 23, "LOC")],
    [(10, 14, "LOC"), (23, 25, "PER")],
    [],
]
#: True boxes in pixels: x, y, width, height and label.
BOXES = [
    [(32, 20, 96, 80, "cat"), (192, 100, 96, 60, "dog")],
    [(40, 30, 120, 90, "dog")],
    [(160, 40, 100, 100, "cat")],
    [],
]
PAGE = "<div><p>A <b>crowd</b> votes.</p><p>An <i>annotator</i> is a worker.</p></div>"
#: Spans in the page as the interface writes them: node and offset of both ends, and offsets in the text of the page.
TERMS = [
    ("/div[1]/p[1]/b[1]/text()[1]", 0, "/div[1]/p[1]/b[1]/text()[1]", 5, 2, 7),
    ("/div[1]/p[2]/i[1]/text()[1]", 0, "/div[1]/p[2]/i[1]/text()[1]", 9, 17, 26),
]
CAPTIONS = ["a cat and a dog", "a big dog", "a cat", "nothing at all"]


def run_trial(context: Trial, executable: Path, screenshot: Path | None) -> None:
    """Start the server, mark the tasks, and run all checks."""
    with run_label_studio(context, executable) as address:
        people = [Person(address, OWNER, new=False), *(Person(address, email, new=True) for email in OTHERS)]
        project = _mark_project(people)
        token = people[0].request_json("POST", "/api/token/")["token"]
        _check_exports(context, people[0], project)
        _check_round_trip(context, people[0], address, project, token)
        if screenshot is not None:
            _check_in_browser(context, people[0], address, project, screenshot)


def _draw(number: int) -> str:
    """Return an image as a data address: grey, with a rectangle for every true box."""
    rows = [bytearray(b"\xdd" * 3 * WIDTH) for _ in range(HEIGHT)]
    for x, y, width, height, label in BOXES[number]:
        colour = bytes((120, 160, 220) if label == "cat" else (220, 160, 120))
        for row in rows[y : y + height]:
            row[3 * x : 3 * (x + width)] = colour * width
    packed = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _mark_project(people: list[Person]) -> int:
    """Create a project and mark its tasks: with errors, an empty annotation, a skipped task, gold, and a model."""
    ann, bob, _ = people
    project: int = ann.request_json("POST", "/api/projects/", json={"title": "Objects", "label_config": CONFIG})["id"]
    guess = {"model_version": "yolo-1", "score": 0.6, "result": [_box(0, (36, 24, 90, 76, "cat"))]}
    tasks = [
        {"data": {"text": text, "page": PAGE, "image": _draw(number)}, "predictions": [guess] if number == 0 else []}
        for number, text in enumerate(TEXTS)
    ]
    ann.request_json("POST", f"/api/projects/{project}/import", json=tasks)
    ids = sorted(task["id"] for task in ann.request_json("GET", "/api/tasks/", params={"project": project})["tasks"])
    for number, task in enumerate(ids):
        for place, person in enumerate(people):
            if (number, place) == (2, 2):
                body: dict[str, Any] = {"result": [], "was_cancelled": True}
            else:
                body = {"result": _mark(number, place), "lead_time": 12.5}
            person.request_json("POST", f"/api/tasks/{task}/annotations/", json=body)
    gold = {"result": [_span(0, NAMES[0][0]), _span(1, NAMES[0][1])], "ground_truth": True}
    ann.request_json("POST", f"/api/tasks/{ids[0]}/annotations/", json=gold)
    bob.request_json(
        "POST", f"/api/tasks/{ids[3]}/drafts", json={"result": [_span(0, (0, 6, "PER"))], "lead_time": 2.0}
    )
    return project


def _mark(number: int, place: int) -> list[dict[str, Any]]:
    """Return the results of a person. The second draws too large, the third misses the last name and box."""
    if number == 3:
        return [_caption(CAPTIONS[3])] if place == 0 else []  # saw everything and marked nothing
    names, boxes = NAMES[number], BOXES[number]
    if place == 2:
        names, boxes = names[:-1], boxes[:-1] or boxes
    results = [_span(index, name) for index, name in enumerate(names)]
    for index, (x, y, width, height, label) in enumerate(boxes):
        extra = 4 * place * (place == 1)
        results.append(_box(index, (x - extra, y - extra, width + 2 * extra, height + 2 * extra, label)))
    results += [_term(index, term) for index, term in enumerate(TERMS[: 1 if place == 2 else 2])]
    results.append(_point(50 + place / 4, 40))
    results.append(_caption(CAPTIONS[number].replace("cat", "cap") if place == 2 else CAPTIONS[number]))
    return results


def _span(number: int, name: tuple[int, int, str]) -> dict[str, Any]:
    value = {"start": name[0], "end": name[1], "labels": [name[2]]}
    return {"id": f"n{number}", "from_name": "names", "to_name": "text", "type": "labels", "value": value}


def _term(number: int, term: tuple[str, int, str, int, int, int]) -> dict[str, Any]:
    names = ("start", "startOffset", "end", "endOffset")
    value = dict(zip(names, term[:4], strict=True)) | {"hypertextlabels": ["TERM"]}
    value["globalOffsets"] = {"start": term[4], "end": term[5]}
    return {"id": f"h{number}", "from_name": "terms", "to_name": "page", "type": "hypertextlabels", "value": value}


def _image_result(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    size = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
    return {"from_name": name, "to_name": "image", "type": kind, "value": value, **size}


def _box(number: int, box: tuple[float, float, float, float, str]) -> dict[str, Any]:
    x, y, width, height, label = box
    place = {"x": 100 * x / WIDTH, "y": 100 * y / HEIGHT, "width": 100 * width / WIDTH, "height": 100 * height / HEIGHT}
    value = {**place, "rotation": 0, "rectanglelabels": [label]}
    return {"id": f"b{number}", **_image_result("objects", "rectanglelabels", value)}


def _point(x: float, y: float) -> dict[str, Any]:
    value = {"x": x, "y": y, "width": 0.5, "keypointlabels": ["eye"]}
    return {"id": "p0", **_image_result("eyes", "keypointlabels", value)}


def _caption(text: str) -> dict[str, Any]:
    return {"id": "c0", "from_name": "caption", "to_name": "image", "type": "textarea", "value": {"text": [text]}}


def _check_exports(context: Trial, ann: Person, project: int) -> None:
    """Check that exports of the server are read."""
    for kind in ("JSON", "JSON_MIN"):
        parameters = {"exportType": kind, "download_all_tasks": "true"}
        content = ann.request_json("GET", f"/api/projects/{project}/export", params=parameters)
        path = context.folder / f"{kind}.json"
        path.write_text(json.dumps(content))
        record(context, f"export_{kind.lower()}.json", _shorten_images(content))
        structured = read_project(path, duplicates="keep").structured
        kinds = {name: one.kind for name, one in structured.items()}
        print(f"  {kind}: {structured}")
        expected = QUESTIONS if kind == "JSON" else {name: one for name, one in QUESTIONS.items() if one != "texts"}
        context.check(f"{kind}: the kinds of questions are recognised", kinds == expected, kinds)
        names, counts = structured["names"], (11, 17) if kind == "JSON" else (12, 19)  # JSON_MIN does not mark gold
        context.check(f"{kind}: {counts[0]} votes on names, {counts[1]} spans", _count(names) == counts, _count(names))
        objects = structured["objects"].crowd
        widths = {float(box[2]) for box in objects.coordinates if objects.mark_worker is not None}
        context.check(f"{kind}: boxes are in pixels", 96.0 in widths and 104.0 in widths, widths)


def _count(question: Any) -> tuple[int, int]:
    people = [row for row, machine in enumerate(question.structure.machine) if not machine]
    return len(people), sum(len(question.structure.answers[row]) for row in people)


def _shorten_images(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _shorten_images(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_shorten_images(one) for one in content]
    return "data:image/png;base64," if isinstance(content, str) and content.startswith("data:image") else content


def _check_round_trip(context: Trial, ann: Person, address: str, project: int, token: str) -> None:
    place = ("--url", address, "--project", project)

    def command(*words: object) -> str:
        program = [sys.executable, "-c", "from wisecrowd.cli import main; main()", *map(str, words)]
        env = offline(LABEL_STUDIO_API_KEY=token, COLUMNS="120")
        process = subprocess.run(program, cwd=context.folder, env=env, capture_output=True, text=True, timeout=300)
        return process.stdout + process.stderr

    def get_predictions() -> list[dict[str, Any]]:
        content = ann.request_json("GET", "/api/predictions/", params={"project": project})
        return [one for one in content if one["model_version"].startswith("wisecrowd")]

    print(pulled := command("label-studio", "pull", *place, "-o", "pulled.json"))
    context.check("all questions are pulled", all(name in pulled for name in QUESTIONS), pulled)
    print(command("questions", "pulled.json"))
    before = {name: one.crowd for name, one in read_project(context.folder / "pulled.json").structured.items()}
    context.check("a worker without marks has voted", before["names"].n_votes == 11, before["names"])
    context.check("skipped tasks are no votes", before["names"].n_votes + 1 == 12)
    for name, kind in QUESTIONS.items():
        print(said := command("aggregate", "pulled.json", "--question", name, "-o", name))
        context.check(f"{name}: {kind} are aggregated", (context.folder / name / "run.json").is_file(), said)
        print(dry := command("label-studio", "push", name, *place, "--dry-run"))
        expected = 4 if kind == "texts" else 3
        context.check(f"{name}: a dry run counts {expected} predictions", f"{expected} added" in dry, dry)
        print(pushed := command("label-studio", "push", name, *place))
        context.check(f"{name}: they are pushed", f"{expected} added" in pushed, pushed)
        print(again := command("label-studio", "push", name, *place))
        context.check(f"{name}: pushed twice, nothing changes", f"{expected} as they were" in again, again)
        back = command("export", name, "--project", "pulled.json", "-o", f"{name}.json")
        context.check(f"{name}: a file of predictions is written", f"{name}.json" in back, back)
    found = {one["result"][0]["from_name"] for one in get_predictions()}
    context.check("predictions of all questions are on the server", found == set(QUESTIONS), found)
    command("label-studio", "pull", *place, "-o", "again.json")
    record(context, "pulled_again.json", _shorten_images(json.loads((context.folder / "again.json").read_text())))
    after = read_project(context.folder / "again.json").structured
    for name in QUESTIONS:
        context.check(f"{name}: what was pushed is no vote", after[name].crowd.digest == before[name].digest)
        consensus = after[name].consensus
        context.check(f"{name}: and is known again", consensus is not None and len(consensus) > 0, consensus)
    spans = wc.score_objects(after["names"].consensus, _truth(before["names"].tasks), kind="spans")
    context.check("the pushed names are the true ones", spans.f1 > 0.8, spans)
    _check_import(context, ann, "objects")
    _check_empty_again(context, command, get_predictions, place)


def _truth(tasks: Any) -> Any:
    import pandas as pd

    rows = [(task, *name) for task, names in zip(tasks, NAMES, strict=True) for name in names]
    return pd.DataFrame(rows, columns=["task", "start", "end", "label"])


def _check_import(context: Trial, ann: Person, name: str) -> None:
    """Check that the server accepts the file of predictions as tasks of a new project, and that it reads the same."""
    title = {"title": "Imported", "label_config": CONFIG}
    project = ann.request_json("POST", "/api/projects/", json=title)["id"]
    tasks = json.loads((context.folder / f"{name}.json").read_text())
    said = ann.request_json("POST", f"/api/projects/{project}/import", json=tasks)
    context.check("the file of predictions is imported", said.get("prediction_count", 3) == 3, said)
    content = ann.request_json("GET", "/api/predictions/", params={"project": project})
    regions = sum(len(one["result"]) for one in content)
    context.check(
        "with all its regions", regions == sum(len(t["predictions"][0]["result"]) for t in tasks if t["predictions"])
    )


def _check_empty_again(context: Trial, command: Any, get_predictions: Any, place: Any) -> None:
    """Check that predictions on tasks without objects are removed by the next push."""
    path = context.folder / "names" / "objects.csv"
    lines = path.read_text().splitlines()
    first = lines[1].split(",")[0]
    path.write_text("\n".join([lines[0], *(line for line in lines[1:] if line.split(",")[0] != first)]) + "\n")
    print(removed := command("label-studio", "push", "names", *place))
    context.check("a task that lost its objects loses its prediction", "1 removed" in removed, removed)
    ours = [one for one in get_predictions() if one["result"][0]["from_name"] == "names"]
    context.check("and the others stay", len(ours) == 2, len(ours))


def _check_in_browser(context: Trial, ann: Person, address: str, project: int, screenshot: Path) -> None:
    """Check in a browser that a task shows the regions of predictions, and mark a word there."""
    from selenium.webdriver.common.by import By

    ids = sorted(task["id"] for task in ann.request_json("GET", "/api/tasks/", params={"project": project})["tasks"])
    with open_browser(context, address) as browser:
        if browser is None:
            return
        browser.get(f"{address}/projects/{project}/data?task={ids[1]}")
        shown = "wisecrowd"
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: shown in browser.find_element(By.TAG_NAME, "body").text, "the prediction", 60)
        screenshot.parent.mkdir(parents=True, exist_ok=True)
        tabs = f"//*[starts-with(normalize-space(text()), '{shown}')]"
        n_tabs = len(browser.find_elements(By.XPATH, tabs))
        context.check("the task shows predictions of wisecrowd", n_tabs >= len(QUESTIONS), n_tabs)
        pages = []
        for number in range(n_tabs):
            browser.find_elements(By.XPATH, tabs)[number].click()
            time.sleep(3)
            pages.append(browser.find_element(By.TAG_NAME, "body").text)
            browser.save_screenshot(str(screenshot.with_stem(f"{screenshot.stem}-{number}")))
        for words in (("PER", "Bob", "LOC", "Paris", "Lima"), ("TERM", "crowd", "annotator")):
            shown_words = any(all(f"\n{word}\n" in page for word in words) for page in pages)
            context.check(f"a prediction lists {' '.join(words)} as regions", shown_words, pages)
        images = [page for page in pages if "\ndog\n1.00" in page or "dog\n1.00" in page]
        context.check("a prediction lists the dog with its score", len(images) >= 1, pages)
        _check_drawing(context, ann, address, browser, screenshot)


def _check_drawing(context: Trial, ann: Person, address: str, browser: Any, screenshot: Path) -> None:
    """Mark a name, a term and a box by mouse, submit, and check that they are read from the export."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    project = ann.request_json("POST", "/api/projects/", json={"title": "Drawn", "label_config": CONFIG})["id"]
    task = {"data": {"text": TEXTS[1], "page": PAGE, "image": _draw(1)}}
    ann.request_json("POST", f"/api/projects/{project}/import", json=[task])
    number = ann.request_json("GET", "/api/tasks/", params={"project": project})["tasks"][0]["id"]
    browser.get(f"{address}/projects/{project}/data?task={number}")
    wait_until(lambda: "Submit" in browser.find_element(By.TAG_NAME, "body").text, "the interface", 60)
    time.sleep(2)

    def click_label(name: str) -> None:
        browser.find_element(By.XPATH, f"//*[normalize-space(text())='{name}']").click()
        time.sleep(0.5)

    def click_word(word: str) -> bool:
        """Double-click a word by the place of its first letters."""
        script = """
            const find = (root, dx, dy) => {
              const walker = root.createTreeWalker(root.body, NodeFilter.SHOW_TEXT);
              for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                const at = node.nodeValue.indexOf(arguments[0]);
                if (at < 0) continue;
                const range = root.createRange();
                range.setStart(node, at); range.setEnd(node, at + arguments[0].length);
                const box = range.getBoundingClientRect();
                const shown = root !== document || node.parentElement.closest('[class*=richtext]');
                if (box.width && shown) return [dx + box.left + box.width / 2, dy + box.top + box.height / 2];
              }
              return null;
            };
            for (const frame of document.querySelectorAll('iframe')) {  // web pages
              const box = frame.getBoundingClientRect();
              const place = frame.contentDocument && find(frame.contentDocument, box.left, box.top);
              if (place) return place;
            }
            return find(document, 0, 0);"""
        place = browser.execute_script(script, word)
        if place is None:
            return False
        actions = ActionChains(browser)
        actions.w3c_actions.pointer_action.move_to_location(int(place[0]), int(place[1]))
        actions.w3c_actions.pointer_action.double_click()
        actions.perform()
        time.sleep(1)
        return True

    click_label("LOC")
    context.check("a word can be clicked", click_word("Paris"))
    click_label("TERM")
    context.check("a word of the page can be clicked", click_word("annotator"))
    click_label("dog")
    canvas = browser.find_element(By.CSS_SELECTOR, "canvas")
    box = canvas.rect
    actions = ActionChains(browser)
    pointer = actions.w3c_actions.pointer_action
    top = browser.execute_script("return arguments[0].getBoundingClientRect().top", canvas)
    pointer.move_to_location(int(box["x"] + box["width"] / 8), int(top + box["height"] * 0.15))
    pointer.pointer_down()
    pointer.move_to_location(int(box["x"] + box["width"] / 4), int(top + box["height"] * 0.3))
    pointer.move_to_location(int(box["x"] + box["width"] / 2), int(top + box["height"] * 0.5))
    pointer.pointer_up()
    actions.perform()
    time.sleep(1)
    browser.save_screenshot(str(screenshot.with_stem(f"{screenshot.stem}-drawn")))
    browser.find_element(By.XPATH, "//button[contains(., 'Submit')]").click()
    time.sleep(3)
    content = ann.request_json("GET", f"/api/projects/{project}/export", params={"exportType": "JSON"})
    path = context.folder / "drawn.json"
    path.write_text(json.dumps(content))
    record(context, "drawn.json", _shorten_images(content))
    structured = read_project(path).structured
    print(json.dumps(_shorten_images(content))[:3000])
    frames = {name: question.crowd.to_frame() for name, question in structured.items()}
    name = frames["names"][["start", "end", "label"]].to_numpy().tolist() if "names" in frames else None
    context.check("the name that was marked by mouse is read", name == [[9, 14, "LOC"]], name)
    term = frames["terms"][["start", "end", "label"]].to_numpy().tolist() if "terms" in frames else None
    context.check("the term that was marked by mouse is read", term == [[17, 26, "TERM"]], term)
    drawn = frames["objects"].iloc[0] if "objects" in frames else None
    is_near = drawn is not None and abs(drawn["x"] - WIDTH / 8) < 4 and abs(drawn["width"] - WIDTH * 3 / 8) < 6
    context.check("the box that was drawn by mouse is read in pixels", is_near, drawn)


if __name__ == "__main__":
    main(run_trial, "label_studio_objects")
