# Debian's Podman with the setup of quay.io/podman/stable (Fedora): its user, its subordinate ids, newuidmap and newgidmap with file
# capabilities, and its settings. Some settings do not work in a pod without privileges (a FUSE program) or would weaken sandboxes (the
# sidecar's own /proc). The chart must not depend on them.
ARG BASE
FROM ${BASE}
RUN chmod u-s /usr/bin/newuidmap /usr/bin/newgidmap && setcap cap_setuid=ep /usr/bin/newuidmap && setcap cap_setgid=ep /usr/bin/newgidmap && \
    useradd --uid 1000 --create-home podman && \
    printf 'podman:1:999\npodman:1001:64535\n' | tee /etc/subuid >/etc/subgid && \
    mkdir -p /etc/containers /home/podman/.config/containers /home/podman/.local/share/containers && \
    printf '%s\n' '[containers]' 'netns="host"' 'userns="host"' 'ipcns="host"' 'utsns="host"' 'cgroupns="host"' 'cgroups="disabled"' \
      'log_driver="k8s-file"' '[engine]' 'cgroup_manager="cgroupfs"' 'events_logger="file"' 'runtime="crun"' >/etc/containers/containers.conf && \
    printf '%s\n' '[containers]' 'volumes=["/proc:/proc"]' 'default_sysctls=[]' >/home/podman/.config/containers/containers.conf && \
    printf '%s\n' '[storage]' 'driver="overlay"' 'runroot="/run/containers/storage"' 'graphroot="/var/lib/containers/storage"' \
      '[storage.options.overlay]' 'mount_program="/usr/bin/fuse-overlayfs"' 'mountopt="nodev,fsync=0"' | \
      tee /etc/containers/storage.conf >/home/podman/.config/containers/storage.conf && \
    chown -R podman:podman /home/podman
ENV _CONTAINERS_USERNS_CONFIGURED="" BUILDAH_ISOLATION=chroot
VOLUME /home/podman/.local/share/containers
