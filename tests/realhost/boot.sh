# Becomes the first process of a small systemd machine in namespaces of its own. Arguments: a folder with host_key and
# client_key.pub, and the port for sshd on the machine's loopback.
#
# The order matters: systemd empties /tmp and remounts cgroups, so whatever it may write to is made private before it
# starts, and the rest of the disk becomes read-only. Every step has to work, or nothing is started.
set -eu
port=$2
host_key=$(cat "$1/host_key") client_key=$(cat "$1/client_key.pub")
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=700 tmpfs /root
mount -t tmpfs -o mode=755 tmpfs /var/lib/systemd
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t proc proc /proc
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  umount -R /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  umount -R /sys/fs/cgroup
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  for one in memory cpu pids; do
    mkdir /sys/fs/cgroup/$one
    mount -t cgroup -o $one cgroup /sys/fs/cgroup/$one
  done
fi
mount -o remount,bind,ro /
for private in /run /tmp /root /var/lib/systemd /dev/shm /sys/fs/cgroup; do
  grep -q "^[^ ]* $private \(tmpfs\|cgroup2\) " /proc/mounts || { echo "$private is not private" >&2; exit 1; }
done
if (: >/var/.ddconsole-probe) 2>/dev/null; then echo "the disk can be written" >&2; exit 1; fi

units=/run/systemd/system
mkdir -p /run/sshd /run/box $units /run/systemd/journald.conf.d /run/user
(umask 077; printf '%s\n' "$host_key" >/run/box/host_key)
printf '%s\n' "$client_key" >/run/box/client_key.pub
printf '[Journal]\nStorage=volatile\n' >/run/systemd/journald.conf.d/box.conf
# what would reach beyond the namespaces
for one in systemd-sysctl systemd-modules-load systemd-remount-fs systemd-tmpfiles-setup systemd-tmpfiles-setup-dev \
  systemd-update-utmp systemd-journal-flush systemd-random-seed systemd-udevd systemd-udev-trigger systemd-timesyncd; do
  ln -s /dev/null $units/$one.service
done
cat >$units/box-sshd.service <<UNIT
[Unit]
DefaultDependencies=no
[Service]
ExecStart=/usr/sbin/sshd -D -e -f /dev/null -p $port -h /run/box/host_key -o ListenAddress=127.0.0.1 -o PidFile=none \\
  -o AuthorizedKeysFile=/run/box/client_key.pub -o StrictModes=no -o UsePAM=no -o MaxSessions=30
UNIT
cat >$units/box.target <<UNIT
[Unit]
DefaultDependencies=no
Requires=dbus.socket systemd-journald.service box-sshd.service
After=dbus.socket systemd-journald.service
UNIT
export container=unshare
exec /lib/systemd/systemd --system --unit=box.target --log-target=journal --show-status=0
