/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why walks ended and what was lost: one list for the enum, the metric's name and the text for
 * users. Append only: numbers are never reused, retired ones stay. */
#ifndef PYPROFD_STOPS_H
#define PYPROFD_STOPS_H

/* X(id, metric name, text for users).  Reasons that end a native walk. */
#define PP_STOPS(X)                                                                                \
	X(NONE, "none", "still walking")                                                           \
	X(ROOT, "root", "the stack is complete")                                                   \
	X(NO_USER, "no_user", "no user stack: a kernel thread, or a task in exit or exec")         \
	X(NO_IMAGE, "no_image", "the process was not known yet")                                   \
	X(NO_MAPPING, "no_mapping", "an address lies in no known executable mapping")              \
	X(NO_ROWS, "no_rows", "unwind rows of this code were not loaded yet")                      \
	X(NO_INFO, "no_info", "code without unwind information and without a frame pointer")       \
	X(READ_FAULT, "read_fault", "the user stack could not be read")                            \
	X(BAD_RULE, "bad_rule", "the unwind rule needs a register that is known at the leaf only") \
	X(NOT_MOVING, "not_moving", "the stack pointer did not move towards the root")             \
	X(MAX_STEPS, "max_steps", "the stack is deeper than the limit of a walk")                  \
	X(MAX_TIME, "max_time", "the walk reached its time limit")                                 \
	X(COMPAT, "compat", "32-bit code is not unwound")                                          \
	X(FINISHED, "finished", "incomplete in the kernel, completed by the agent")                \
	X(TORN, "torn", "the stack changed before the agent could finish it")                      \
	X(LEFT_OUT, "left_out", "incomplete in the kernel, and its user has too many of them")

/* Reasons that end the walk of the Python frames. */
#define PP_PY_STOPS(X)                                                                             \
	X(NONE, "none", "still walking")                                                           \
	X(ROOT, "root", "every Python frame was found")                                            \
	X(NOT_PYTHON, "not_python", "no interpreter in this process")                              \
	X(NO_THREAD_STATE, "no_thread_state", "this thread runs no Python")                        \
	X(READ_FAULT, "read_fault", "Python's memory could not be read")                           \
	X(BAD_CODE, "bad_code", "a frame does not point to a code object")                         \
	X(MAX_STEPS, "max_steps", "the stack is deeper than the limit of a walk")                  \
	X(MAX_TIME, "max_time", "the walk reached its time limit")                                 \
	X(TORN, "torn", "the frames changed before the agent could read them")

/* What was lost.  Each is one counter per CPU; the agent sums and shows them. */
#define PP_LOSSES(X)                                                                               \
	X(RING_FULL, "ring_full", "a new stack did not fit into the ring; it is sent next time")   \
	X(EVENTS_FULL, "events_full", "a process event did not fit; /proc is read again")          \
	X(COUNTS_FULL, "counts_full",                                                              \
	  "samples counted without their stacks: the window's table was full")                     \
	X(COUNTS_BUSY, "counts_busy",                                                              \
	  "samples counted without their stacks: the table was locked (NMI)")                      \
	X(NO_SCRATCH, "no_scratch",                                                                \
	  "samples not counted: walks nested too deeply, or a CPU that came online without "       \
	  "memory for them")                                                                       \
	X(PROCESSES_FULL, "processes_full", "a process found no room in the table of processes")   \
	X(IMAGES_FULL, "images_full", "a process found no room in the table of process contexts")  \
	X(MISS_DROPPED, "miss_dropped", "an incomplete stack could not be sent to the agent")      \
	X(CODE_FAULT, "code_fault", "a code object's names could not be read in the kernel")       \
	X(CODES_BUSY, "codes_busy", "a code object could not be noted as sent; it is sent again")  \
	X(FRAMES_OMITTED, "frames_omitted", "frames left out in the middle of very deep stacks")   \
	X(SEGMENTS_FULL, "segments_full",                                                          \
	  "a stack has more segments of Python frames than the limit")                             \
	X(THREADS_FULL, "threads_full", "a thread found no slot: its waits are not measured")      \
	X(SWITCHES_UNSEEN, "switches_unseen",                                                      \
	  "switches that the kernel did not report: times from sched_info, or unknown")            \
	X(LEDGERS_FULL, "ledgers_full",                                                            \
	  "ended threads that are not in their process's line of the ledger: it was full")         \
	X(WAITS_WEIGHTED, "waits_weighted",                                                        \
	  "waits chosen at random, which also count for waits left out")                           \
	X(SAMPLES_WEIGHTED, "samples_weighted",                                                    \
	  "samples chosen at random, which also count for samples left out")                       \
	X(THREADS_TORN, "threads_torn",                                                            \
	  "a thread switched each time it was read: it is counted a window later")                 \
	X(SWEPT_LOST, "swept_lost",                                                                \
	  "a thread asleep since before the start: its time or stack is missing")                  \
	X(TIMELINE_FULL, "timeline_full", "parts of the timeline did not fit into its ring")       \
	X(WAKES_FULL, "wakes_full",                                                                \
	  "waits counted without their wakers: the window's table was full")                       \
	X(PERF_MAPS_REFUSED, "perf_maps_refused",                                                  \
	  "a JIT's perf-PID.map was not read: a link, not its own file, or its parser failed")     \
	X(MEMORY_LATE, "memory_late", "reads of a process' memory without an answer within 0.1 s") \
	X(MEMORY_LEFT_ALONE, "memory_left_alone",                                                  \
	  "reads of a process' memory not tried: it, or its user's processes, were late before")   \
	X(OPENS_LATE, "opens_late",                                                                \
	  "files or perf maps whose file system did not answer within 0.1 s")                      \
	X(OPENS_LEFT_ALONE, "opens_left_alone",                                                    \
	  "files not opened: their process, user or file system did not answer before")            \
	X(CHILDREN_STUCK, "children_stuck",                                                        \
	  "children of pyprofd that cannot be ended, as a file system does not answer them")       \
	X(FILES_REFUSED, "files_refused",                                                          \
	  "an ELF file was given up: too much work, huge pages, or no answer")                     \
	X(FILES_LOST, "files_lost",                                                                \
	  "a closed file was needed again and gone: its functions have no names")                  \
	X(SAMPLES_SWALLOWED, "samples_swallowed",                                                  \
	  "samples not counted: due while another one was walked")                                 \
	X(SAMPLES_UNSEEN, "samples_unseen",                                                        \
	  "samples that did not fire: another BPF program or a hypervisor had the CPU")            \
	X(STATES_GUESSED, "states_guessed",                                                        \
	  "Python stacks of a process with several interpreters; the interpreter was guessed")     \
	X(WAITS_FULL, "waits_full",                                                                \
	  "waits counted without their stacks: the window's table was full")                       \
	X(COARSE_FULL, "coarse_full",                                                              \
	  "counted without stack and process: too many lost their stacks")                         \
	X(ROWS_BOUNDED, "rows_bounded",                                                            \
	  "counted without their stacks: a window has more counters than the limit")               \
	X(DICTIONARY_FULL, "dictionary_full",                                                      \
	  "stacks and code objects left out: their process had too many")                          \
	X(TEXT_REFUSED, "text_refused",                                                            \
	  "files without unwind rows: mostly holes, or their user's share was used up")            \
	X(ROWS_REFUSED, "rows_refused",                                                            \
	  "unwind rows and rules left out: their user's share was used up")                        \
	X(PYTHONS_REFUSED, "pythons_refused",                                                      \
	  "interpreter files without Python frames: their user's share was used up")               \
	X(RING_SHARE, "ring_share",                                                                \
	  "a new stack did not fit into its user's share of the ring; it is sent next time")       \
	X(STACKS_LEFT_OUT, "stacks_left_out",                                                      \
	  "incomplete stacks that stay so: their user's share was used up, or the run ended")      \
	X(SHARES_FULL, "shares_full",                                                              \
	  "times that somebody without a share of the tables had to take that of all such")        \
	X(THREADS_SHARE, "threads_share",                                                          \
	  "switches of threads whose waits are missing: their user's slots are used up")           \
	X(PROFILE_REFUSED, "profile_refused",                                                      \
	  "stacks left out of the profiles: their user's share of a window was used up")           \
	X(DICTIONARY_SHARE, "dictionary_share",                                                    \
	  "stacks and code objects left out: their user's share of the room was used up")          \
	X(PROCESSES_SHARE, "processes_share",                                                      \
	  "forks, execs and changes of cgroup not followed: their user's share was used up")       \
	X(MAP_SETS_REFUSED, "map_sets_refused",                                                    \
	  "processes whose stacks the agent alone can unwind: their user's share was used up")     \
	X(FILES_PUT_OFF, "files_put_off",                                                          \
	  "questions put off: files or code of a user had used up a share of the parser's time")   \
	X(LEDGERS_SHARE, "ledgers_share",                                                          \
	  "ended threads that are not in their process's line: their user's share was used up")    \
	X(CODES_REFUSED, "codes_refused",                                                          \
	  "Python code objects without names: their parser was late, failed or was not asked")     \
	X(LABELS_REFUSED, "labels_refused",                                                        \
	  "values of processes' labels left out: their user's share was used up")                  \
	X(LABELS_UNREAD, "labels_unread",                                                          \
	  "programs without all of their labels: no answer, not allowed, or too long")             \
	X(PROBE_UNMATCHED, "probe_unmatched",                                                      \
	  "ends of probed calls whose beginning was not seen, or the reverse")                     \
	X(PROBE_CALLS_FULL, "probe_calls_full",                                                    \
	  "probed calls without their time: too many were under way")                              \
	X(PROBE_ARGUMENT, "probe_argument", "hits of probes whose argument could not be read")     \
	X(BLOCKS_FULL, "blocks_full",                                                              \
	  "sampled allocations left out of what is held: the table of blocks was full")            \
	X(TEXTS_REFUSED, "texts_refused",                                                          \
	  "names of modules and kernels left out: too many, or their user's share was used up")    \
	X(KEEP_FAILED, "keep_failed",                                                              \
	  "ends for want of memory, and SIGUSR1, of which nothing could be kept")                  \
	X(KEEP_SHARE, "keep_share",                                                                \
	  "ends for want of memory that were not kept: too many waited, or too many of one user")  \
	X(PAGES_UNKNOWN, "pages_unknown",                                                          \
	  "memory not counted as touched: the mapping it belongs to was not found")                \
	X(STACKS_CUT, "stacks_cut",                                                                \
	  "stacks of page faults and probes that stay incomplete: samples go first")               \
	X(PROBE_SHARE, "probe_share",                                                              \
	  "hits of probes left out: their user's share of what is new was used up")                \
	X(SITES_REFUSED, "sites_refused",                                                          \
	  "files or places of code without probes: their user's share was used up")                \
	X(CUDA_FULL, "cuda_full",                                                                  \
	  "CUDA calls without their kernel, or not counted: the table of totals was full")         \
	X(KERNELS_UNNAMED, "kernels_unnamed",                                                      \
	  "GPU kernels shown by their handle, or by a name that is cut or stayed mangled")         \
	X(GAUGES_LOST, "gauges_lost",                                                              \
	  "times that the gauges of GPUs were given up: the child that reads them failed")         \
	X(CUDA_CAPTURES_UNSEEN, "cuda_captures_unseen",                                            \
	  "stream captures that were not seen to begin: calls in them count as run")               \
	X(CUDA_GRAPHS_UNKNOWN, "cuda_graphs_unknown",                                              \
	  "launches of CUDA graphs that may have more kernels than are known")                     \
	X(CUDA_BYTES_GUESSED, "cuda_bytes_guessed",                                                \
	  "batches of copies whose bytes are scaled: only some sizes were read")                   \
	X(GPU_FULL, "gpu_full",                                                                    \
	  "CUDA calls that no label `gpu` knows of: the table of processes or waits was full")     \
	X(CUDA_BLOCKS_FULL, "cuda_blocks_full",                                                    \
	  "GPU allocations left out of what is live, or left there: a table or a share was full")  \
	X(CUDA_FREES_UNKNOWN, "cuda_frees_unknown",                                                \
	  "frees of GPU memory whose allocation was not seen: it was live, and not told")          \
	X(PROCESSES_REFUSED, "processes_refused",                                                  \
	  "processes without files and names: the agent knew as many as it can")                   \
	X(MAPPINGS_REFUSED, "mappings_refused",                                                    \
	  "mappings left out: their process, or its user, had more than the limit")                \
	X(RECORDS_BAD, "records_bad",                                                              \
	  "records of the kernel, and lines of /proc/PID/maps, that do not decode")                \
	X(ROWS_FULL, "rows_full",                                                                  \
	  "unwind rows and rules left out for now: there was no room, whoever had it")             \
	X(FILES_UNOPENED, "files_unopened",                                                        \
	  "mapped files that could not be opened: their code lacks unwind rows, or names")         \
	X(SYMBOLS_REFUSED, "symbols_refused",                                                      \
	  "functions without a name: too many were asked about at once")                           \
	X(PROFILES_DROPPED, "profiles_dropped",                                                    \
	  "profiles that were not written: the disk was full or slow for too long")                \
	X(MERGES_REFUSED, "merges_refused",                                                        \
	  "groups of a store's files that could not be merged, and stay as they are")

#define PP_ENUM_STOP(id, name, text) PP_STOP_##id,
#define PP_ENUM_PY_STOP(id, name, text) PP_PY_STOP_##id,
#define PP_ENUM_LOSS(id, name, text) PP_LOSS_##id,
enum pp_stop { PP_STOPS(PP_ENUM_STOP) PP_STOP_COUNT };
enum pp_py_stop { PP_PY_STOPS(PP_ENUM_PY_STOP) PP_PY_STOP_COUNT };
enum pp_loss { PP_LOSSES(PP_ENUM_LOSS) PP_LOSS_COUNT };

/* Returns whether no Python frame is missing behind this enum pp_py_stop: all were found, or none
 * runs there. */
static inline int pp_py_stop_is_whole(unsigned int stop)
{
	return stop == PP_PY_STOP_NONE || stop == PP_PY_STOP_ROOT ||
	       stop == PP_PY_STOP_NOT_PYTHON || stop == PP_PY_STOP_NO_THREAD_STATE;
}

#endif
