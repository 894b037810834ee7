/** Selects the account that runs a command in a sandbox. */
import { RolloutFailure } from '@swefarm/shared';

export type Account = { uid: number; gid: number; home: string };

export const ROOT: Account = { uid: 0, gid: 0, home: '/root' };

export type Accounts = {
  /** Account that runs commands without a user. */
  account: Account;
  /**
   * Returns the account of a user of the image. Throws RolloutFailure sandbox_refused. If accountOf is absent, only root and `account`
   * exist.
   */
  accountOf?(user: string): Promise<Account>;
};

/** Returns the account that runs a command of `user`. Throws RolloutFailure sandbox_refused. */
export async function accountOf(accounts: Accounts, user: string | undefined): Promise<Account> {
  if (user === undefined) return accounts.account;
  if (user === 'root' || user === '0') return ROOT;
  if (accounts.accountOf) return accounts.accountOf(user);
  throw new RolloutFailure('sandbox_refused', `this runtime cannot run commands as the user ${user}`);
}
