/** Memoizes what is found with requests to an endpoint. */
import type { Post } from '../endpoint/post.ts';

/** Memoizes the result of `look`, but not its errors. */
export function once<T>(look: (post: Post) => Promise<T>): (post: Post) => Promise<T> {
  let found: Promise<T> | null = null;
  return async (post) => {
    found ??= look(post);
    try {
      return await found;
    } catch (error) {
      found = null;
      throw error;
    }
  };
}
