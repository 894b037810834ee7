/** Prefixes of image names that are paths on this machine. */
export const FORMS = /^(docker-archive|oci|dir|host\+dir):/;
