# Runs as root in a fresh fork: puts /home and /tmp of a sealed machine's disk in place of the fork's own.
#
# Usage: sh -c "$(cat adopt_home.sh)" adopt_home DEVICE MASKED...
# MASKED are paths below /home/user that are left out, because programs would run what is in them.
#
# The disk is hostile: nothing on it is executed or sourced, and no link on it is followed in making mounts. What the
# fork writes goes to its own disk, so a sealed disk that is full, or damaged and read-only, takes it all the same.
# Under emulation every process costs 20 ms and more: tests are the shell's own, and most mounts one program's.
#
# Exit codes: 65, there is no file system that could be mounted; 66, the device did not come.
set -eu
umask 022
PATH=/usr/sbin:/usr/bin:/sbin:/bin
device=$1
shift
final=/mnt/final
pristine=/mnt/pristine
own=/var/lib/deskfork/examined
user=home/user
conda=$user/anaconda3
home_over=$own/home/over/user

tries=0
until [ -b "$device" ]; do
    tries=$((tries + 1))
    if [ $tries -gt 1000 ]; then
        echo "the guest has no $device" >&2
        exit 66
    fi
    sleep 0.02
done

# Whether PATH on the sealed disk is a folder, and neither it nor a parent is a link.
is_folder() {
    place=$final
    rest=$1/
    while [ -n "$rest" ]; do
        place=$place/${rest%%/*}
        rest=${rest#*/}
        if [ -L "$place" ] || [ ! -d "$place" ]; then
            return 1
        fi
    done
}

folder_or_empty() {
    if is_folder "$1"; then
        folder=$final/$1
    else
        folder=$own/empty
    fi
}

# Find out how PATH below the user's home is left out; a link on the way to it is left out itself.
mask() {
    rest=$1
    done=
    while [ "$rest" != "${rest#*/}" ]; do
        done=$done/${rest%%/*}
        rest=${rest#*/}
        if [ -L "$final/$user$done" ]; then
            folders="$folders $home_over$done"
            return
        fi
    done
    if [ -e "$final/$user/$1" ] || [ -L "$final/$user/$1" ]; then
        folders="$folders $home_over$done"
        absent="$absent $home_over/$1"
    fi
}

mkdir -p $final $pristine
# Read-only, but not the device: that lets the kernel replay the journal. The disk may ask for a panic on errors.
mount -t ext4 -o ro,nosuid,nodev,noexec,errors=remount-ro "$device" $final || exit 65
# Private: what is mounted over the fork's own must not come up in here too.
mount --bind --make-private / $pristine

folders="$own/empty $own/home/work $own/tmp/work"
# Where these are to be mount points, links and files of the agent's are gone by that.
folders="$folders $home_over/.ssh $home_over/anaconda3 $own/tmp/over/.X11-unix $own/tmp/over/.ICE-unix"
absent=
if is_folder $user; then
    for path in "$@"; do
        mask "$path"
    done
fi
mkdir -p $folders
for path in $absent; do
    # How an overlay says that something is not there.
    mknod "$path" c 0 0
done
chown -R user:user $home_over
chmod 1777 $own/tmp/over

# What is mounted where, in this order.
mounts=$own/mounts
for name in home tmp; do
    folder_or_empty $name
    options=nosuid,nodev,redirect_dir=off,metacopy=off,index=off
    echo "overlay /$name overlay $options,lowerdir=$folder,upperdir=$own/$name/over,workdir=$own/$name/work 0 0"
done >$mounts
for path in $user/.ssh $conda tmp/.X11-unix tmp/.ICE-unix; do
    echo "$pristine/$path /$path none bind 0 0"
done >>$mounts
# Of the agent's environments only what is data: the kernels that it registered, and environments that it made itself.
for path in /$conda/envs/*/share/jupyter/kernels; do
    folder_or_empty "${path#/}"
    echo "$folder $path none bind 0 0"
done >>$mounts
if is_folder $conda/envs; then
    for path in $final/$conda/envs/*; do
        name=${path##*/}
        case $name in
        *[!A-Za-z0-9._-]*) continue ;;
        esac
        if is_folder "$conda/envs/$name" && [ ! -e "$pristine/$conda/envs/$name" ]; then
            mkdir "$pristine/$conda/envs/$name"
            echo "$path /$conda/envs/$name none bind 0 0"
        fi
    done >>$mounts
fi
mount -a -T $mounts
