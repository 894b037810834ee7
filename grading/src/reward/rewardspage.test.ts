import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REWARDS_PAGE, rewardsPage } from './rewardspage.ts';

test('docs/rewards.md has the reward table of the code (npm run docs:rewards)', () => {
  expect(readFileSync(REWARDS_PAGE, 'utf8')).toBe(rewardsPage());
});
