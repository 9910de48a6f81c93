# A folder shown as a server of NFSv4 shows it: each file has an access list of that kind, `system.nfs4_acl`, and no
# other attribute. Everything else is done to the folder itself.
#
#   listed.py FOLDER AT
import errno
import os
import sys

from fusepy import FUSE, FuseOSError, Operations

NAME = "system.nfs4_acl"
# One entry: the owner may do all.
LIST = bytes([0, 0, 0, 1] + [0] * 11 + [1] + [0, 0, 0, 6]) + b"OWNER@\0\0"


class Listed(Operations):
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, op, path, *args):
        if not hasattr(self, op):
            raise FuseOSError(errno.ENOSYS)
        try:
            return getattr(self, op)(self.folder + path, *args)
        except OSError as error:
            raise FuseOSError(error.errno)

    def getattr(self, path, fh=None):
        seen = os.lstat(path)
        names = ("st_ino", "st_mode", "st_uid", "st_gid", "st_size", "st_nlink", "st_mtime", "st_ctime", "st_atime")
        return {name: getattr(seen, name) for name in names}

    def readdir(self, path, fh):
        return [".", ".."] + os.listdir(path)

    def open(self, path, flags):
        return os.open(path, flags)

    def create(self, path, mode, fi=None):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def release(self, path, fh):
        os.close(fh)

    def rename(self, old, new):
        os.rename(old, self.folder + new)

    def link(self, new, old):
        os.link(self.folder + old, new)

    def truncate(self, path, length, fh=None):
        os.truncate(path, length)

    def unlink(self, path):
        os.unlink(path)

    def chmod(self, path, mode):
        os.chmod(path, mode)

    def chown(self, path, uid, gid):
        os.chown(path, uid, gid)

    def listxattr(self, path):
        return [NAME] if os.path.isfile(path) else []

    def getxattr(self, path, name, position=0):
        if name == NAME and os.path.isfile(path):
            return LIST
        raise FuseOSError(errno.ENODATA)

    def setxattr(self, path, name, value, options, position=0):
        raise FuseOSError(errno.EOPNOTSUPP)


options = {"fsname": "server", "subtype": "listed", "allow_other": True, "use_ino": True, "nothreads": True}
FUSE(Listed(sys.argv[1]), sys.argv[2], **options)
