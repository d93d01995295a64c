/* First process of a node: loads the few modules the root disk needs, mounts it and hands over to systemd.
 *
 * A general initramfs probes for everything and takes many seconds under emulation; a VM's disk is always the same.
 * /modules lists module files, dependencies first. The kernel line says root=/dev/...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char *what, const char *about) {
    FILE *log = fopen("/dev/kmsg", "w");
    if (log) {
        fprintf(log, "node init: %s %s (%s)\n", what, about, strerror(errno));
        fclose(log);
    }
}

static void load_modules(void) {
    char path[512];
    FILE *list = fopen("/modules", "r");
    while (list && fgets(path, sizeof path, list)) {
        path[strcspn(path, "\n")] = 0;
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || (syscall(SYS_finit_module, file, "", 0) && errno != EEXIST)) {
            say("cannot load", path);
        }
        if (file >= 0) {
            close(file);
        }
        unlink(path); /* the memory is better used by pods */
    }
    if (list) {
        fclose(list);
    }
}

static void find_root(char *device, size_t size) {
    char line[2048] = "";
    FILE *file = fopen("/proc/cmdline", "r");
    if (file) {
        if (!fgets(line, sizeof line, file)) {
            line[0] = 0;
        }
        fclose(file);
    }
    snprintf(device, size, "/dev/vda1");
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        if (!strncmp(word, "root=", 5)) {
            snprintf(device, size, "%s", word + 5);
        }
    }
}

int main(int count, char **words) {
    char root[256];
    (void)count;
    mount("dev", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
    mount("sys", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
    load_modules();
    find_root(root, sizeof root);
    for (int tries = 0; mount(root, "/root", "ext4", MS_NOATIME, ""); tries++) {
        if (tries % 100 == 99) {
            say("waiting for", root);
        }
        usleep(50000);
    }
    mount("/dev", "/root/dev", NULL, MS_MOVE, NULL);
    mount("/proc", "/root/proc", NULL, MS_MOVE, NULL);
    mount("/sys", "/root/sys", NULL, MS_MOVE, NULL);
    if (chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/")) {
        say("cannot switch to", root);
    }
    words[0] = "/sbin/init";
    execv(words[0], words);
    say("cannot start", words[0]);
    return 1;
}
