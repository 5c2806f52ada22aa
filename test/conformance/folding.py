"""A case-insensitive file system, as on macOS and Windows: folding.py SOURCE MOUNTPOINT [exact]. Ends at unmount."""
import errno, os, sys
try: import fusepy as fuse
except ImportError: import fuse

FOLD = (lambda n: n) if len(sys.argv) > 3 else str.casefold


class Folding(fuse.Operations):
    def __init__(self, root): self.root = root

    def at(self, path):
        """The stored spelling of each name. A last name that does not exist keeps the requested spelling."""
        here = self.root
        for name in [n for n in path.split('/') if n]:
            try: names = os.listdir(here)
            except OSError: names = []
            here = os.path.join(here, next((n for n in names if FOLD(n) == FOLD(name)), name))
        return here

    def getattr(self, path, fh=None):
        st = os.lstat(self.at(path))
        return {key: getattr(st, key) for key in ('st_atime', 'st_ctime', 'st_gid', 'st_mode', 'st_mtime', 'st_nlink', 'st_size', 'st_uid', 'st_ino', 'st_blocks')}

    def readdir(self, path, fh): return ['.', '..'] + os.listdir(self.at(path))
    def readlink(self, path): return os.readlink(self.at(path))
    def chmod(self, path, mode): return os.chmod(self.at(path), mode)
    def chown(self, path, uid, gid): return os.lchown(self.at(path), uid, gid)
    def mkdir(self, path, mode):
        if os.path.lexists(self.at(path)): raise fuse.FuseOSError(errno.EEXIST)
        os.mkdir(self.at(path), mode)
        self.own(path)
    def rmdir(self, path): return os.rmdir(self.at(path))
    def unlink(self, path): return os.unlink(self.at(path))
    def symlink(self, path, target): os.symlink(target, self.at(path)); self.own(path)
    def rename(self, old, new): return os.rename(self.at(old), self.at(new))
    def link(self, path, source): return os.link(self.at(source), self.at(path))
    def own(self, path):

        uid, gid, _ = fuse.fuse_get_context()
        os.lchown(self.at(path), uid, gid)
    def create(self, path, mode, fi=None):
        fd = os.open(self.at(path), os.O_RDWR | os.O_CREAT, mode)
        self.own(path)
        return fd
    def open(self, path, flags): return os.open(self.at(path), flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW))
    def read(self, path, size, offset, fh): return os.pread(fh, size, offset)
    def write(self, path, data, offset, fh): return os.pwrite(fh, data, offset)
    def truncate(self, path, length, fh=None): return os.truncate(self.at(path), length)
    def release(self, path, fh): return os.close(fh)
    def utimens(self, path, times=None): return os.utime(self.at(path), times)
    def statfs(self, path):
        st = os.statvfs(self.at(path))
        return {key: getattr(st, key) for key in ('f_bavail', 'f_bfree', 'f_blocks', 'f_bsize', 'f_favail', 'f_ffree', 'f_files', 'f_flag', 'f_frsize', 'f_namemax')}


fuse.FUSE(Folding(sys.argv[1]), sys.argv[2], foreground=True, nothreads=True, allow_other=os.getuid() == 0, default_permissions=True, use_ino=True)
