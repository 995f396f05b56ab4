#!/bin/sh
# Runs once in a chroot of the root filesystem, after all files are in place.
set -eu
export DEBIAN_FRONTEND=noninteractive

id user >/dev/null 2>&1 || useradd --uid 1000 --create-home --shell /bin/bash user
echo user:password | chpasswd
usermod -aG sudo,video,audio,input user
mkdir -p /home/user/Desktop /home/user/Downloads /home/user/.config
# useradd leaves a home that exists as it is, and this one came with the Python environments.
cp -rn /etc/skel/. /home/user
chown -R user:user /home/user
chmod 440 /etc/sudoers.d/deskfork

echo 'en_US.UTF-8 UTF-8' >/etc/locale.gen
locale-gen >/dev/null
echo LANG=en_US.UTF-8 >/etc/default/locale
ln -sf /usr/share/zoneinfo/UTC /etc/localtime
echo desktop >/etc/hostname
printf '127.0.0.1 localhost\n::1 localhost\n' >/etc/hosts
# Present but empty: systemd makes one at the first boot of a template, and each fork gets its own.
: >/etc/machine-id
rm -f /etc/ssh/ssh_host_* /var/lib/dbus/machine-id
ln -sf /etc/machine-id /var/lib/dbus/machine-id

systemctl enable -q deskfork-boot deskfork-x deskfork-bus deskfork-session deskfork-gateway deskfork-observer ssh
systemctl mask -q apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer systemd-tmpfiles-clean.timer systemd-timesyncd.service systemd-networkd.service systemd-resolved.service \
    systemd-logind.service getty@tty1.service serial-getty@ttyS0.service systemd-pstore.service systemd-rfkill.socket \
    systemd-random-seed.service systemd-update-utmp.service systemd-update-utmp-runlevel.service keyboard-setup.service \
    console-setup.service systemd-binfmt.service dev-hugepages.mount man-db.timer modprobe@drm.service \
    sys-kernel-debug.mount sys-kernel-tracing.mount systemd-quotacheck.service
systemctl set-default -q multi-user.target
# One workspace: a window on another one would look like none.
sed -i 's#<number>4</number>#<number>1</number>#' /etc/xdg/openbox/rc.xml
echo /opt/deskfork/lib >/opt/deskfork/venv/lib/python3.11/site-packages/deskfork.pth
python3 -m compileall -q /opt/deskfork/lib
for modules in /lib/modules/*; do
    update-initramfs -c -k "${modules##*/}"
done
dpkg-query -W >/packages.txt
