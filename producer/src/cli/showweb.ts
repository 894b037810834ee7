/** `swefarm show --web FILE`: the page over a result file alone, until Ctrl-C. */
import { createLog, whenAborted } from '@swefarm/shared';
import { servePage } from '../gateway/localpage.ts';
import { ensurePage } from '../page/built.ts';
import { readFileSource } from '../page/filesource.ts';
import { EXIT } from '../run/exit.ts';
import { lazyFarm } from './lazyfarm.ts';
import { type Flags, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, say } from './terminal.ts';

export async function showWeb(path: string, flags: Flags): Promise<number> {
  const stop = listenForStop();
  await using late = lazyFarm(() => producerConfig(flags));
  const dataset = typeof flags.dataset === 'string' ? flags.dataset : null;
  const source = await readFileSource(path, { dataset, farm: late.farm });
  await ensurePage(() => say('the page is built, once; that takes some seconds'));
  await using page = await servePage(source, createLog({ log_level: 'warn', log_format: 'auto' }));
  await print(page.url);
  say('open this address; it is for you alone, and ends with Ctrl-C');
  await whenAborted(stop.draining);
  return EXIT.allJudged;
}
