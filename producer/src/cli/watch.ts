/** `swefarm watch`: shows the farm on a terminal screen that redraws, or prints its state (in a pipe, with --once or --json). */
import { openFarm, sleepAtMost, UnusableError } from '@swefarm/shared';
import { plainLine, renderScreen } from '../view/screen.ts';
import { watchFarm } from '../view/watching.ts';
import { command, flag, whole } from './declare.ts';
import { EXIT } from './exit.ts';
import { FARM, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, styled, widthOf, writeTo } from './terminal.ts';

/** Switches to the terminal's alternate screen and hides the cursor. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const REST_OF_LINE = '\u001b[K';
const REST_OF_SCREEN = '\u001b[J';

const SCREEN_SECONDS = 2;
const LINES_SECONDS = 10;

export const watch = command({
  arguments: { '[run]': 'id of a run (default: all)' },
  options: {
    '--every <seconds>': whole('time between two updates (default: 2, in a pipe 10)'),
    '--once': flag('show the state once and end'),
    '--json': flag('print a line of JSON for each update'),
    ...FARM,
  },
  example: 'swefarm watch --every 5',
  async run(o, { run: runId }) {
    const stop = listenForStop();
    const screen = process.stdout.isTTY === true && !o.json && !o.once;
    const seconds = o.every ?? (screen ? SCREEN_SECONDS : LINES_SECONDS);
    await using farm = await openFarm(producerConfig(o), 'producer', { signal: stop.draining });
    const readFarm = watchFarm(farm, runId);
    const show = async (): Promise<void> => {
      const now = await readFarm();
      if (o.json) return print(JSON.stringify(now));
      const size = { width: widthOf(process.stdout), height: (process.stdout.rows ?? 50) - 1 };
      const paint = (style: Parameters<typeof styled>[0], shown: string) =>
        styled(style, shown, process.stdout);
      if (screen) return draw(renderScreen(now, { ...size, paint }));
      return print(o.once ? renderScreen(now, { ...size, height: 1000, paint }) : plainLine(now));
    };
    if (screen) {
      await writeTo(process.stdout, ENTER);
      process.once('exit', () => void process.stdout.write(LEAVE));
    }
    do {
      try {
        await show();
      } catch (error) {
        // A restart of Redis must not end the screen.
        if (!screen || !(error instanceof UnusableError)) throw error;
        await draw(`swefarm: ${error.message}\ntrying again`);
      }
      if (o.once) break;
      await sleepAtMost(Math.max(1, seconds) * 1000, stop.draining);
    } while (!stop.draining.aborted);
    return EXIT.allJudged;
  },
});

async function draw(text: string): Promise<void> {
  const lines = text.split('\n').map((line) => `${line}${REST_OF_LINE}`);
  await writeTo(process.stdout, `${HOME}${lines.join('\r\n')}${REST_OF_SCREEN}`);
}
