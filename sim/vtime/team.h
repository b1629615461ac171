/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Teams (sci/team.h) of all nodes of a simulation, for collective calls. */
#ifndef SIM_VTIME_TEAM_H
#define SIM_VTIME_TEAM_H

#include <sci/team.h>

#include "sim/vtime/vtime.h"

struct vt_teams;

/* Make the tables that the teams of all nodes share. @id: of the endpoints. NULL: no memory */
struct vt_teams *vt_teams_new(struct vt_sim *s, uint32_t id);
void vt_teams_free(struct vt_teams *t);

/*
 * Make the team of the node with number @rank: it has all nodes of the simulation. @of and @ep must
 * outlive the team. NULL: no memory
 */
struct sci_team *vt_team_join(const struct vt_teams *of, struct sci_ep *ep, unsigned int rank);

/* Free a team. The endpoint must be closed: requests of a failed call may use the team's memory. */
void vt_team_leave(struct sci_team *team);

#endif
