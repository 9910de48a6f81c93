# Run once inside the base that has dnf and pacman beside apt: makes their repositories of tiny packages, which lie in
# /srv/rpm and /srv/pac and answer without a network. The names of the two do not meet in the file system.
set -eu
export HOME=/root LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin

# Nothing works on packages by itself.
ln -sf /dev/null /etc/systemd/system/dnf-makecache.timer

# rpm_package NAME VERSION [FIELDS] [SCRIPTS] [ARCHITECTURE]
rpm_package() {
    mkdir -p /tmp/specs
    cat >"/tmp/specs/$1-$2.spec" <<SPEC
Name: $1
Version: $2
Release: 1
Summary: made by a test
License: none
${3:-}
%description
made by a test
%install
mkdir -p %{buildroot}/usr/share/$1 %{buildroot}/etc
echo $2 >%{buildroot}/usr/share/$1/it
echo $2 >%{buildroot}/etc/$1.conf
%files
/usr/share/$1
%config(noreplace) /etc/$1.conf
${4:-}
SPEC
    rpmbuild -bb --quiet --target "${5:-noarch}" --define '_rpmdir /srv/rpm' --define '_topdir /tmp/rpmbuild' \
        --define 'debug_package %{nil}' "/tmp/specs/$1-$2.spec" 2>/dev/null
}

# Of which several versions may be there at once, as of a kernel.
rpm_beside() {
    cat >"/tmp/specs/$1-$2.spec" <<SPEC
Name: $1
Version: $2
Release: 1
Summary: made by a test
License: none
Provides: installonlypkg(kernel)
%description
made by a test
%install
mkdir -p %{buildroot}/usr/share/$1
echo $2 >%{buildroot}/usr/share/$1/$2
%files
/usr/share/$1/$2
SPEC
    rpmbuild -bb --quiet --target noarch --define '_rpmdir /srv/rpm' --define '_topdir /tmp/rpmbuild' "/tmp/specs/$1-$2.spec" 2>/dev/null
}
for version in 1.0 1.22.1 1.22.9 2.0; do rpm_package r-hello $version; done
rpm_package r-epoch 1.0 'Epoch: 2'
rpm_package r-found 1.0
rpm_package r-dep 1.0 'Requires: r-hello'
rpm_package r-rival 1.0 'Conflicts: r-hello'
rpm_package r-other 1.0
rpm_package r-shell 1.0 'Provides: /bin/sh'
rpm_package r-badpost 1.0 '' '%post
echo I am broken
exit 3'
rpm_package r-slow 1.0 '' '%post
while [ ! -e /srv/r-slow ]; do sleep 0.1; done'
rpm_package r-late 1.0
rpm_package r-late 2.0 '' '%post
while [ ! -e /srv/r-late ]; do sleep 0.1; done'
rpm_package r-prov-a 1.0 'Provides: r-virtual'
rpm_package r-prov-b 1.0 'Provides: r-virtual'
for version in 1.0 2.0; do for of in x86_64 i686; do rpm_package r-both $version '' '' $of; done; done
rpm_package r-both 3.0 '' '' x86_64
rpm_package r-only32 1.0 '' '' i686
for version in 1.0 2.0 3.0 4.0; do rpm_beside r-kernel $version; done
rpm_package r-signed 1.0
rpm_package tenure-host 9.0
# One source is signed, packages and list alike, by a key that it names itself and that nobody has given to rpm.
mkdir -p /srv/rpm-signed /etc/yum.repos.d /tmp/gnupg
chmod 700 /tmp/gnupg
export GNUPGHOME=/tmp/gnupg
gpg --batch --quiet --passphrase '' --quick-generate-key lab@localhost rsa2048 sign never
mv /srv/rpm/noarch/r-signed-* /srv/rpm-signed/
rpmsign --define '_gpg_name lab@localhost' --define '__gpg /usr/bin/gpg' --addsign /srv/rpm-signed/*.rpm >/dev/null
createrepo_c -q /srv/rpm-signed
gpg --batch --quiet --armor --detach-sign /srv/rpm-signed/repodata/repomd.xml
gpg --batch --armor --export >/srv/rpm-signed/key
gpgconf --kill all
unset GNUPGHOME
createrepo_c -q /srv/rpm
printf '[lab]\nname=lab\nbaseurl=file:///srv/rpm\ngpgcheck=0\n' >/etc/yum.repos.d/lab.repo
printf '[signed]\nname=signed\nbaseurl=file:///srv/rpm-signed\ngpgcheck=1\ngpgkey=file:///srv/rpm-signed/key\n' >/etc/yum.repos.d/signed.repo
# Its plugin for packages built by hand looks for a folder of theirs.
printf '[main]\nenabled = false\n' >/etc/dnf/plugins/local.conf

# pac_package NAME VERSION [FIELDS] [SCRIPT]
pac_package() {
    folder=/tmp/pac/$1-$2
    mkdir -p "$folder" /srv/pac
    cat >"$folder/PKGBUILD" <<BUILD
pkgname=$1
pkgver=$2
pkgrel=1
arch=(any)
license=(none)
options=(!strip)
backup=(etc/$1.conf)
${3:-}
package() {
    mkdir -p "\$pkgdir/usr/share/$1" "\$pkgdir/etc"
    echo $2 >"\$pkgdir/usr/share/$1/it"
    echo $2 >"\$pkgdir/etc/$1.conf"
}
BUILD
    if [ -n "${4:-}" ]; then
        printf '%s\n' "$4" >"$folder/$1.install"
        echo "install=$1.install" >>"$folder/PKGBUILD"
    fi
    chown -R builder "$folder" /srv/pac
    su builder -c "cd $folder && PKGEXT=.pkg.tar.gz PKGDEST=/srv/pac makepkg -d -f >/dev/null 2>&1"
}
mkdir -p /tmp/pac
useradd --no-create-home --home-dir /tmp/pac builder
pac_package p-hello 1.0
pac_package p-hello 1.22.9
pac_package p-found 1.0
pac_package p-dep 1.0 'depends=(p-hello)'
pac_package p-new 1.0 "depends=('p-hello>=1.22.9')"
pac_package p-rival 1.0 'conflicts=(p-hello)'
pac_package p-other 1.0
pac_package p-badpost 1.0 '' 'post_install() { echo I am broken; return 3; }'
pac_package p-slow 1.0 '' 'post_install() { while [ ! -e /srv/p-slow ]; do sleep 0.1; done; }'
pac_package p-prov-a 1.0 'provides=(p-virtual)'
pac_package p-prov-b 1.0 'provides=(p-virtual)'
pac_package tenure-host 9.0
userdel builder
chown -R root:root /srv/pac
cd /srv/pac
repo-add -q lab.db.tar.gz p-hello-1.0-* p-found-* p-dep-* p-rival-* p-other-* p-badpost-* p-slow-* p-prov-* tenure-host-* >/dev/null 2>&1
cat >/etc/pacman.conf <<CONF
[options]
Architecture = auto
[lab]
SigLevel = Optional TrustAll
Server = file:///srv/pac
CONF
rm -rf /tmp/specs /tmp/rpmbuild /tmp/gnupg /tmp/pac
