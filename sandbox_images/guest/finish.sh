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

# The web's replay (deskfork_guest/web.py): a certificate for the recorded hosts, from an authority that can sign no other
# and, its key being thrown away, none at all any more.
web=/etc/deskfork/web
hosts='raw.githubusercontent.com www.gutenberg.org'
alternatives=$(for host in $hosts; do printf 'DNS:%s,' "$host"; done)
mkdir -p "$web" /var/lib/deskfork/web
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj '/CN=deskfork recorded web' \
    -addext 'basicConstraints=critical,CA:TRUE,pathlen:0' -addext 'keyUsage=critical,keyCertSign' \
    -addext "nameConstraints=critical,$(for host in $hosts; do printf 'permitted;DNS:%s,' "$host"; done | sed 's/,$//')" \
    -keyout /tmp/authority.key -out /usr/local/share/ca-certificates/deskfork-web.crt 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj '/CN=deskfork recorded web page' \
    -keyout "$web/key.pem" -out /tmp/page.csr 2>/dev/null
printf 'subjectAltName=%s\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n' "${alternatives%,}" >/tmp/page.ext
openssl x509 -req -in /tmp/page.csr -CA /usr/local/share/ca-certificates/deskfork-web.crt -CAkey /tmp/authority.key \
    -set_serial 1 -days 36500 -extfile /tmp/page.ext -out "$web/certificate.pem" 2>/dev/null
chmod 600 "$web/key.pem"
rm -f /tmp/authority.key /tmp/page.csr /tmp/page.ext
update-ca-certificates >/dev/null
# As Debian does for its own Python: what the system trusts, `requests` trusts.
ln -sf /etc/ssl/certs/ca-certificates.crt /home/user/anaconda3/envs/jupyter/lib/python3.11/site-packages/certifi/cacert.pem
chown user:user /var/lib/deskfork/web

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
