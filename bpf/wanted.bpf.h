/* SPDX-License-Identifier: GPL-2.0 */
/* A filter: the cgroups that count, for programs. User space fills it. */
#ifndef BRUMM_WANTED_BPF_H
#define BRUMM_WANTED_BPF_H

#define CGROUPS		65536

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CGROUPS);
	__type(key, u64);
	__type(value, u8);
} wanted SEC(".maps");

/* Cgroups made since that found no room there. */
__u64 unwanted;

/* A new cgroup below one that is wanted is so, too. */
SEC("raw_tp/cgroup_mkdir")
int filter_mkdir(struct bpf_raw_tracepoint_args *ctx)
{
	struct cgroup *cgroup = (struct cgroup *)ctx->args[0];
	u64 up = BPF_CORE_READ(cgroup, self.parent, cgroup, kn, id);
	u64 id = BPF_CORE_READ(cgroup, kn, id);
	u8 yes = 1;

	if (bpf_map_lookup_elem(&wanted, &up) &&
	    bpf_map_update_elem(&wanted, &id, &yes, BPF_ANY))
		__sync_fetch_and_add(&unwanted, 1);
	return 0;
}

#endif /* BRUMM_WANTED_BPF_H */
