/** `swefarm completion` and `swefarm man`: scripts for shells and man pages, generated from the declarations of all commands. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { softwareVersion, UsageError } from '@swefarm/shared';
import { Command, InvalidArgumentError } from 'commander';
import { bashCompletion } from '../manual/bash.ts';
import { fishCompletion } from '../manual/fish.ts';
import { manPage, pageName } from '../manual/manpage.ts';
import { pageOf, withNamesCompleted, withPagesBelow } from '../manual/page.ts';
import { zshCompletion } from '../manual/zsh.ts';
import { choice, command, type Declaration, parsed, required, text, textBelow } from './declare.ts';
import { print, printStatus } from './terminal.ts';

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };
type Shell = keyof typeof SHELLS;

/** @param withAll adds all commands to a program */
export const completion = (withAll: (program: Command) => Promise<Command>): Declaration =>
  command({
    arguments: { '<shell>': required(choice('shell that reads the script', Object.keys(SHELLS) as Shell[])) },
    options: {},
    example: 'swefarm completion bash > ~/.local/share/bash-completion/completions/swefarm',
    notes: `
The scripts complete commands, options, choices and files. Where they belong:
  bash  ~/.local/share/bash-completion/completions/swefarm
  zsh   _swefarm in a folder of $fpath, before compinit
  fish  ~/.config/fish/completions/swefarm.fish
`,
    async run(_, { shell }) {
      const program = pageOf(await withAll(new Command('swefarm')), textBelow);
      await print(SHELLS[shell](withNamesCompleted(program)).trimEnd());
    },
  });

/** @param withAll adds all commands to a program */
export const man = (withAll: (program: Command) => Promise<Command>): Declaration =>
  command({
    arguments: { '[command...]': 'command whose page is printed, such as dataset fetch (default: swefarm)' },
    options: {
      '--output-dir <folder>': text('write the pages of all commands into this folder'),
      '--date <date>': parsed('date in the pages, such as 2026-01-31 (default: today)', dateOf),
    },
    example: 'swefarm man rollout | man -l -',
    async run(o, { command: words }) {
      const pages = withPagesBelow(pageOf(await withAll(new Command('swefarm')), textBelow));
      const date = o.date ?? new Date().toISOString().slice(0, 10);
      const edition = { version: softwareVersion(), date };
      if (o.outputDir !== undefined) {
        if (words.length > 0) throw new UsageError('--output-dir writes all pages: leave out the command');
        mkdirSync(o.outputDir, { recursive: true });
        for (const page of pages)
          writeFileSync(join(o.outputDir, `${pageName(page)}.1`), manPage(page, edition, pages));
        return printStatus(`swefarm: ${pages.length} man pages: ${o.outputDir}`);
      }
      const name = ['swefarm', ...words].join('-');
      const page = pages.find((one) => pageName(one) === name);
      if (!page) throw new UsageError(`${words.join(' ')}: no such command; swefarm --help lists them`);
      await print(manPage(page, edition, pages).trimEnd());
    },
  });

function dateOf(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return text;
  throw new InvalidArgumentError('expected a date such as 2026-01-31.');
}
