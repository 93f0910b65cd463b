// Thread over std::thread, with name and signal mask.
#include "quern/os/thread.h"

#include <pthread.h>
#include <csignal>

#include <string>
#include <utility>

namespace quern::os {

Thread::Thread(std::string_view name, std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  thread_ = std::thread([name = std::string(name.substr(0, 15)), body = std::move(body)]() noexcept {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Thread& Thread::operator=(Thread&& other) noexcept {
  join();
  thread_ = std::move(other.thread_);
  return *this;
}

Thread::~Thread() {
  join();
}

void Thread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace quern::os
