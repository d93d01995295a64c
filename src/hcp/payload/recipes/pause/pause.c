/* The process that holds a pod's namespaces: it collects orphaned children and otherwise sleeps until told to stop. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_stop(int number) {
    (void)number;
    stop = 1;
}

static void on_child(int number) {
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void) {
    struct sigaction ending = {.sa_handler = on_stop};
    struct sigaction reaping = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    sigset_t watched, before;

    sigemptyset(&watched);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGTERM);
    sigprocmask(SIG_BLOCK, &watched, &before); /* so that a signal between the check and the sleep is not lost */
    if (sigaction(SIGINT, &ending, NULL) || sigaction(SIGTERM, &ending, NULL) || sigaction(SIGCHLD, &reaping, NULL)) {
        return 1;
    }
    while (!stop) {
        sigsuspend(&before);
    }
    return 0;
}
