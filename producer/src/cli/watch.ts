/** `swefarm watch`: the farm on one screen that redraws; plain lines where there is no terminal. */
import { openFarm, sleepAtMost, UnusableError } from '@swefarm/shared';
import type { Command } from 'commander';
import { plainLine, renderScreen } from '../view/screen.ts';
import { watchFarm } from '../view/watching.ts';
import { EXIT } from './exit.ts';
import { addFarmOptions, type Flags, producerConfig, wholeNumber } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, styled, widthOf, writeTo } from './terminal.ts';

/** Redraws in place: uses the terminal's alternate screen, without a cursor. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const REST_OF_LINE = '\u001b[K';
const REST_OF_SCREEN = '\u001b[J';

const SCREEN_SECONDS = 2;
const LINES_SECONDS = 10;

export function addWatch(program: Command): void {
  const command = program
    .command('watch')
    .argument('[run]', 'id of a run (default: all)')
    .option('--every <seconds>', 'time between two updates (default: 2, in a pipe 10)', wholeNumber)
    .option('--once', 'show the state once and end')
    .option('--json', 'print a line of JSON for each update');
  addFarmOptions(command).action(async (runId: string | undefined, flags: Flags) => {
    process.exitCode = await watch(runId, flags);
  });
}

async function watch(runId: string | undefined, flags: Flags): Promise<number> {
  const stop = listenForStop();
  const screen = process.stdout.isTTY === true && flags.json !== true && flags.once !== true;
  const seconds = (flags.every as number | undefined) ?? (screen ? SCREEN_SECONDS : LINES_SECONDS);
  await using farm = await openFarm(producerConfig(flags), 'producer', { signal: stop.draining });
  const look = watchFarm(farm, runId);
  const show = async (): Promise<void> => {
    const now = await look();
    if (flags.json === true) return print(JSON.stringify(now));
    const size = { width: widthOf(process.stdout), height: (process.stdout.rows ?? 50) - 1 };
    const paint = (style: Parameters<typeof styled>[0], text: string) => styled(style, text, process.stdout);
    if (screen) return draw(renderScreen(now, { ...size, paint }));
    return print(flags.once === true ? renderScreen(now, { ...size, height: 1000, paint }) : plainLine(now));
  };
  if (screen) await enterScreen();
  do {
    try {
      await show();
    } catch (error) {
      // A restart of Redis must not end a screen that has worked; a failed first update must.
      if (!screen || !(error instanceof UnusableError)) throw error;
      await draw(`swefarm: ${error.message}\ntrying again`);
    }
    if (flags.once === true) break;
    await sleepAtMost(Math.max(1, seconds) * 1000, stop.draining);
  } while (!stop.draining.aborted);
  return EXIT.allJudged;
}

async function enterScreen(): Promise<void> {
  await writeTo(process.stdout, ENTER);
  // However this process ends, the terminal is restored.
  process.once('exit', () => void process.stdout.write(LEAVE));
}

async function draw(text: string): Promise<void> {
  const lines = text.split('\n').map((line) => `${line}${REST_OF_LINE}`);
  await writeTo(process.stdout, `${HOME}${lines.join('\r\n')}${REST_OF_SCREEN}`);
}
