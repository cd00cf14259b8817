"""The environments that Forethought ships."""

from forethought.environments.parts import Option
from forethought.environments.registry import EnvironmentSpec

RULES = Option(
    "rules",
    "paper",
    "paper or reference",
    "the paper's rules, or the behavior of its public repository, mistakes included",
)
EXPERT = Option(
    "expert",
    "optimal",
    "optimal or random_choice",
    "whom SFT learns from: one that wins, or one that sees as well and chooses at random",
)
IMAGE_SIZE = Option("image_size", 300, "a whole number from 48 to 1024", "side in pixels")

NUMBER_LINE = EnvironmentSpec(
    id="forethought/NumberLine-v0",
    entry_point="forethought.environments.cards.number_line:NumberLine",
    summary="Walk from the current number to the target number, both shown in an image.",
    observation="image",
    actions="- +",
    reward="+1 on the target, -1 for a step that does not come closer, else 0",
    success="the return is above 0: the target was reached without a wrong step",
    options=(
        Option(
            "rules",
            "paper",
            "paper, reference or reference_2d947f4",
            "the paper's rules, or the behavior of its public repository before 2024-06-26 "
            "(which may start on the target), or since the commit 2d947f4 of that day",
        ),
        IMAGE_SIZE,
        Option("max_position", 5, "a whole number from 1 to 99", "the largest number"),
        EXPERT,
    ),
)

EZ_POINTS = EnvironmentSpec(
    id="forethought/EZPoints-v0",
    entry_point="forethought.environments.cards.formula_game:ez_points",
    summary="Type a formula over two cards that equals 12.",
    observation="image and text",
    actions="1 to 10 + * =",
    reward="=: +10 if the formula is 12 with both cards used once, else -1; "
    "a number not on an unused card -1; else 0",
    success="the return is above 0",
    options=(RULES, IMAGE_SIZE, EXPERT),
)

POINTS24 = EnvironmentSpec(
    id="forethought/Points24-v0",
    entry_point="forethought.environments.cards.formula_game:points24",
    summary="Type a formula over four cards that equals 24.",
    observation="image and text",
    actions="1 to 10 (13 without faces_as_ten) + - * / ( ) =",
    reward="=: +10 if the formula is 24 with all four cards used once, else -1; "
    "a number not on an unused card -1; else 0",
    success="the return is above 0",
    options=(
        RULES,
        IMAGE_SIZE,
        Option("faces_as_ten", True, "True or False", "J, Q and K count 10, else 11, 12, 13"),
        Option("deals", "all", "all, seen or unseen", "a fifth of the sets of values is unseen"),
        Option("expert", "recall", "recall or search", "its thoughts try formulas, or name one"),
    ),
)

BLACKJACK = EnvironmentSpec(
    id="forethought/Blackjack-v0",
    entry_point="forethought.environments.cards.blackjack:Blackjack",
    summary="Hit or stand, against a dealer who draws to 17.",
    observation="image",
    actions="stand hit",
    reward="+1 for a win, 0 for a draw, -1 for a loss",
    success="the return is above 0, that is, a win",
    options=(
        RULES,
        IMAGE_SIZE,
        Option("natural", False, "True or False", "a win with ace and ten pays 1.5"),
        EXPERT,
    ),
)

BANDIT = EnvironmentSpec(
    id="forethought/Bandit-v0",
    entry_point="forethought.environments.bandit:Bandit",
    summary="Repeat the letter that the prompt names: a check that an algorithm learns at all.",
    observation="text",
    actions="the first letters of the alphabet",
    reward="1 for the right letter, else 0",
    success="the letter was right",
    options=(
        Option("arms", 4, "a whole number from 2 to 26", "number of actions"),
        EXPERT,
    ),
)

WORDLE = EnvironmentSpec(
    id="forethought/Wordle-v0",
    entry_point="forethought.environments.wordle.wordle:Wordle",
    summary="Find a hidden word of five letters in six guesses.",
    observation="text",
    actions="a word of the list; any text is a guess",
    reward="0 for the hidden word, -1 for any other guess",
    success="the word was found",
    options=(
        Option("words", "small", "small or large", "412 or 754 words"),
        Option(
            "rules",
            "official",
            "official or reference",
            "the game's marks, or LMRL-Gym's, which ignore letters that occur twice",
        ),
        Option(
            "replies",
            "marks",
            "marks or known",
            "the last guess's marks, or after them what all marks so far say together",
        ),
        Option("spelling", "letters", "letters or words", "guesses as c r a n e, or as crane"),
    ),
)

CHESS = EnvironmentSpec(
    id="forethought/Chess-v0",
    entry_point="forethought.environments.chess.game:Chess",
    summary="Checkmate an engine of limited strength, or win an endgame.",
    observation="text",
    actions="a move, such as e2e4 (UCI) or e4 (SAN)",
    reward="+1 for checkmate, -1 for an illegal move, else 0",
    success="the opponent is checkmated",
    options=(
        Option(
            "start",
            "initial",
            "initial, kqk, krk or mate_in_2",
            "all pieces, or an endgame: king and queen or rook against king, a mate in two",
        ),
        Option("opponent", "stockfish", "stockfish or builtin", "builtin needs no engine, is weak"),
        Option("stockfish", "stockfish", "a name or a path", "the engine's program"),
        Option("color", "white", "white or black", "the agent's"),
        Option("notation", "uci", "uci or san", "of moves"),
        Option(
            "board", "fen", "fen, squares or pieces", "one line, a word for each square or piece"
        ),
        Option("legal_moves", False, "True or False", "whether the legal moves are listed"),
        Option(
            "on_illegal",
            "stay",
            "stay, lose or random",
            "the agent tries again, the game ends, or a random move is played",
        ),
        Option("illegal_limit", 5, "a whole number from 1 to 100", "this illegal move ends it"),
        Option("ply_limit", 200, "a whole number from 2 to 1000", "half-moves of both sides"),
    ),
    extra="chess",
    required_modules=("chess",),
)

TWENTY_QUESTIONS = EnvironmentSpec(
    id="forethought/TwentyQuestions-v0",
    entry_point="forethought.environments.twenty_questions.twenty_questions:TwentyQuestions",
    summary="Find a hidden object by at most 20 questions for Yes or No.",
    observation="text",
    actions="a question in English, or a guess; any text costs as much",
    reward="0 for the right guess, -1 for anything else",
    success="the object was guessed",
    options=(
        Option("wordings", "sentences", "sentences or words", "Is it made of metal? or metal?"),
        Option("replies", "answers", "answers or facts", "Yes. and No., or METAL and metal"),
    ),
)

ALFWORLD = EnvironmentSpec(
    id="forethought/ALFWorld-v0",
    entry_point="forethought.environments.alfworld.alfworld:ALFWorld",
    summary="Bring, clean, heat, cool or look at household things, in rooms seen bit by bit.",
    observation="text, a schematic image, or both; the admissible commands are listed",
    actions="a command, such as: go to desk 1; take mug 1 from desk 1; heat mug 1 with microwave 1",
    reward="50 for the goal, 1 for each of its conditions met for the first time, "
    "-1 for an inadmissible command",
    success="the goal is reached within the limit of steps",
    options=(
        Option(
            "split",
            "by_seed",
            "by_seed, train, valid_seen or valid_unseen",
            "by_seed: train, and valid_seen for held-out episodes",
        ),
        Option(
            "games",
            None,
            "a folder in the official file tree, or None",
            "None: ALFWORLD_DATA where it is set, else generated games",
        ),
        Option("limit_steps", 50, "a whole number from 1 to 1000", "commands in an episode"),
        Option(
            "reward",
            "paper",
            "paper or reference",
            "reference: the share of conditions met, again at every step (RL4VLM's code)",
        ),
        Option(
            "match",
            "exact",
            "exact or reference",
            "reference: the first admissible command that the text contains",
        ),
        Option("view", "text", "text, image or both", "what the agent is shown"),
        Option("labels", False, "True or False", "names in the image, from 256 pixels"),
        Option("expert", "direct", "direct or scan", "scan: its thoughts go through what is left"),
        IMAGE_SIZE,
    ),
    extra="alfworld",
    required_modules=("alfworld", "textworld", "fast_downward"),
)

WEBSHOP = EnvironmentSpec(
    id="forethought/WebShop-v0",
    entry_point="forethought.environments.webshop.webshop:WebShop",
    summary="Search a shop, choose a product and its options, and buy what was asked for.",
    observation="text; what can be clicked is listed",
    actions="search[query], or click[label] for a label on the page",
    reward="at the purchase, 0 to 1: the share of attributes, options and price cap that are met, "
    "times how far the product is of the right kind",
    success="the reward is 1",
    options=(
        Option(
            "data",
            None,
            "a folder with the original's files, or None",
            "products and goals; None: a generated catalogue of 12,000 products",
        ),
        Option("goals", "human", "human or synthetic", "which goals of the original's files"),
        Option("catalogue_seed", 0, "a whole number", "of the generated catalogue"),
        Option(
            "split",
            "by_seed",
            "by_seed, train, validation or test",
            "by_seed: train goals, and test goals for held-out episodes",
        ),
        Option(
            "view",
            "text",
            "text or text_rich",
            "the page, plain, or with what can be clicked and what was clicked marked",
        ),
        Option("per_page", 10, "a whole number from 1 to 50", "products on a page of results"),
        Option("limit_steps", 15, "a whole number from 1 to 1000", "actions in an episode"),
    ),
    extra="webshop",
    required_modules=("bm25s", "Stemmer", "thefuzz"),
)

SOKOBAN = EnvironmentSpec(
    id="forethought/Sokoban-v0",
    entry_point="forethought.environments.sokoban.sokoban:Sokoban",
    summary="Push the box onto the target, in a small room seen from above.",
    observation="text, an image, or both",
    actions="up down left right",
    reward="10 when every box is on a target, 1 for each that comes onto one, -1 for each that "
    "leaves it, -0.1 a step",
    success="every box is on a target",
    options=(
        Option("size", 6, "a whole number from 5 to 10", "cells on a side, walls included"),
        Option("boxes", 1, "a whole number from 1 to 3", "boxes, and targets"),
        Option("limit_steps", 15, "a whole number from 5 to 200", "steps in an episode"),
        Option("least_moves", 4, "1 to half of limit_steps", "of the shortest solution"),
        Option("view", "text", "text, image or both", "what the agent is shown"),
        IMAGE_SIZE,
    ),
)

MANIPULATION = EnvironmentSpec(
    id="forethought/Manipulation-v0",
    entry_point="forethought.environments.manipulation.manipulation:Manipulation",
    summary="Pick an object up with a robot arm, or place it near another one.",
    observation="a camera's image, and the gripper's state in words",
    actions="eight bins of 256, such as b127b127b255b127b127b127b000b000: shift, turn, gripper, "
    "end",
    reward="1 at success, else 0",
    success="the object is lifted by 8 cm; or it rests within 10 cm of the other one",
    options=(
        Option("task", "pick", "pick or place_near", "what the instruction asks for"),
        IMAGE_SIZE,
        Option("limit_steps", None, "a whole number from 10 to 200, or None", "None: 40 or 80"),
        Option("view", "image", "image or state", "a camera's image, or where everything is"),
        Option("proprioception", True, "True or False", "whether the gripper's state is told"),
        Option("randomize", False, "True or False", "colors, light, view and drawer are drawn"),
    ),
    extra="manipulation",
    required_modules=("mujoco", "OpenGL"),
)

SHIPPED = (
    NUMBER_LINE,
    EZ_POINTS,
    POINTS24,
    BLACKJACK,
    BANDIT,
    WORDLE,
    TWENTY_QUESTIONS,
    CHESS,
    ALFWORLD,
    WEBSHOP,
    SOKOBAN,
    MANIPULATION,
)
