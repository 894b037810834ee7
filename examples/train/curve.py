"""python curve.py OUT.svg NAME=FILE.jsonl...: draws the reward over policy versions, one line for each file of grpo.py."""

import json
import sys
from html import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 300, 50, 20, 20, 70
COLORS = ("#1f6feb", "#2da44e", "#bf3989", "#8c959f", "#9a6700")


def drawn(curves):
    """Returns SVG of the curves: rewards in the order of the versions, by name."""
    longest = max(2, *(len(rewards) for rewards in curves.values()))

    def x(step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / (longest - 1)

    def y(reward):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - reward)

    parts = []
    for reward in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(reward):.1f}" y2="{y(reward):.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(reward) + 4:.1f}" text-anchor="end">{reward:g}</text>')
    for step in range(0, longest, max(1, longest // 8)):
        parts.append(f'<text x="{x(step):.1f}" y="{y(0) + 18:.1f}" text-anchor="middle">{step}</text>')
    parts.append(
        f'<text x="{WIDTH / 2}" y="{y(0) + 36:.1f}" text-anchor="middle">version of the policy (mean reward of its rollouts)</text>'
    )
    for number, (name, rewards) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        points = " ".join(f"{x(step):.1f},{y(reward):.1f}" for step, reward in enumerate(rewards))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        at = LEFT + number * (WIDTH - LEFT - RIGHT) / len(curves)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - 10}" fill="{color}">{escape(name)}</text>')
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12"><title>Mean reward over versions of the policy</title>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *parts, "</svg>\n"])


def rewards_of(file):
    with open(file, encoding="utf8") as lines:
        return [json.loads(line)["reward"] for line in lines]


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all("=" in pair for pair in sys.argv[2:]):
        sys.exit(__doc__)
    with open(sys.argv[1], "w", encoding="utf8") as out:
        out.write(drawn({name: rewards_of(file) for name, file in (pair.split("=", 1) for pair in sys.argv[2:])}))
